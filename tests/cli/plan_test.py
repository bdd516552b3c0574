"""rowtide plan: the figures that must come out, by term; what fits and what is refused; options, pages and paths."""
import itertools
import json
import os
import re
import resource
import subprocess
import unittest

import checkpoints
from program import DONE, Ended, MODEL, PROGRAM, ProgramTest, REFUSED, SOURCE, TABLE_BYTES, USAGE, gguf

NOT_SO = 1
GIB, GB = 2**30, 10**9
SANITIZED = "ROWTIDE_SANITIZED" in os.environ

QWEN = ["--model", "qwen3.8-flash-next"]
NVFP4, FP8, BF16, Q4 = ([*QWEN, "--precision", name] for name in ["NVFP4", "FP8", "BF16", "Q4"])
DEEPSEEK = ["--model", "deepseek-v4.1-flash"]
SPARK, RTX_PRO = ["--device", "dgx-spark"], ["--device", "rtx-pro-6000"]
QWEN_ROWS = 320_001_536


class PlanTest(ProgramTest):
    def plan(self, *arguments, fits=True, runs=None):
        """The document. `runs`: whether an engine of today can; nothing: as it may."""
        ended = self.run_program("plan", *arguments, "--json")
        plan = json.loads(ended.output)
        self.assertIn("fits", plan, ended.messages)
        self.assertEqual(plan["fits"], fits, plan["verdict"])
        self.assertEqual(plan["missing_bytes"] == 0, fits)
        if runs is not None:
            self.assertEqual(plan["runs"], runs, plan["verdict"])
        looked_at = plan.get("searched") or plan.get("compared") or [plan]
        is_so = any(one["fits"] and one["runs"] for one in looked_at)
        self.assertEqual(ended.code, DONE if is_so else NOT_SO, plan["verdict"])
        return plan

    def near(self, value, expected, share=0.05):
        self.assertLessEqual(abs(value - expected), share * abs(expected), f"{value} is not {expected}")

    def usage(self, *arguments, words=()):
        return self.fail_with(USAGE, "usage", "plan", *arguments, words=words)


def item_bytes(plan, name, pool=0):
    """Of all items of the pool with such a beginning."""
    return sum(item["bytes"] for item in plan["pools"][pool]["items"] if item["name"].startswith(name))


WEIGHTS = ("weights", "dense", "shared experts", "routed experts", "embeddings", "output head", "draft", "vision")


def weights_of(plan):
    return sum(item_bytes(plan, name) for name in WEIGHTS)


def left_for_kv(plan):
    """Of the memory that the weights are in: for keys, values and states, and free."""
    return plan["pools"][0]["free_bytes"] + plan["kv"]["bytes"]


def keys_and_values(plan):
    return sum(term["bytes"] for term in plan["kv"]["terms"] if term["name"].startswith("keys and values"))


def candidates(plan):
    return {candidate["placement"]: candidate for candidate in plan["table"]["candidates"]}


class Qwen(PlanTest):
    def test_the_table(self):
        text = self.succeed("plan", *FP8, "--device", "b300", "--explain").output
        for words in ["320,001,536 rows of 160 bytes", "16 rows, 2,560 bytes", "layer 1 (from 0)"]:
            self.assertIn(words, re.sub(r"\s+", " ", text))
        for precision, row_bytes, gib in [(FP8, 160, 47.68), (BF16, 320, 95.37), (Q4, 90, 26.82), (NVFP4, 160, 47.68)]:
            with self.subTest(precision[-1]):
                model = json.loads(self.run_program("plan", *precision, *SPARK, "--json").output)["model"]
                self.assertEqual(model["bytes_table"], QWEN_ROWS * row_bytes)
                self.near(model["bytes_table"] / GIB, gib, 0.001)
                self.assertEqual(model["bytes_total"], model["bytes_table"] + model["bytes_rest"])

    def test_nvfp4_on_a_spark_needs_the_table_on_nvme(self):
        plan = self.plan(*NVFP4, *SPARK, runs=True)
        self.near(plan["model"]["bytes_total"], 132.7 * GB, 0.01)
        self.near(plan["model"]["bytes_rest"], 81.5 * GB, 0.01)
        self.assertEqual(plan["table"]["placement"], "nvme")
        self.assertTrue(12 * GB <= left_for_kv(plan) <= 18 * GB, left_for_kv(plan))
        self.near(weights_of(plan), 81.5 * GB, 0.01)
        for placement in ["device", "host", "pinned"]:
            self.assertFalse(candidates(plan)[placement]["fits"], placement)
            refused = self.run_program("plan", *NVFP4, *SPARK, "--placement", placement)
            self.assertEqual(refused.code, NOT_SO, refused.output)
        self.plan(*NVFP4, *SPARK, "--placement", "nvme")

    def test_pinned_memory_is_never_recommended_where_memory_is_unified(self):
        for device in ["dgx-spark", "strix-halo", "m3-ultra"]:
            with self.subTest(device):
                plan = json.loads(self.run_program("plan", *NVFP4, "--device", device, "--json").output)
                self.assertNotEqual(plan["table"]["placement"], "pinned")
                self.assertFalse(candidates(plan)["pinned"]["fits"])

    def test_nvfp4_on_an_rtx_pro_6000_needs_the_table_off_the_card(self):
        plan = self.plan(*NVFP4, *RTX_PRO, "--host-memory", "96GiB", runs=True)
        self.assertIn(plan["table"]["placement"], ["pinned", "host"])
        self.assertFalse(candidates(plan)["device"]["fits"])
        self.assertEqual([pool["name"] for pool in plan["pools"]], ["device memory", "host memory", "disk"])
        self.assertGreaterEqual(item_bytes(plan, "conditional-memory table", pool=1), plan["model"]["bytes_table"])
        self.plan(*NVFP4, *RTX_PRO, "--placement", "device", fits=False)
        self.plan(*NVFP4, *RTX_PRO, "--placement", "nvme")
        for placement in ["pinned", "host"]:
            small = self.plan(*NVFP4, *RTX_PRO, "--placement", placement, "--host-memory", "48GiB", fits=False)
            self.assertGreater(small["pools"][1]["missing_bytes"], 0)
        self.assertEqual(self.plan(*NVFP4, *RTX_PRO, "--host-memory", "48GiB")["table"]["placement"], "nvme")

    def test_q4_on_a_spark(self):
        plan = self.plan(*Q4, *SPARK, "--context", "262144", runs=True)
        self.near(plan["model"]["bytes_total"] / GIB, 103.7, 0.001)
        self.near(weights_of(plan) / GIB, 76.9, 0.001)  # and not the 103.7 of the file
        self.near(plan["table"]["bytes"] / GIB, 26.82, 0.001)
        self.assertEqual((plan["table"]["placement"], plan["engine"]), ("nvme", "llama.cpp"))
        self.assertEqual(item_bytes(plan, "conditional-memory table"), 0)
        self.assertEqual(keys_and_values(plan), 24 * 1024)
        self.assertEqual(item_bytes(plan, "keys and values"), 6 * GIB)

    def test_every_item_adds_up(self):
        for arguments in [[*NVFP4, *SPARK], [*NVFP4, *RTX_PRO], [*Q4, *SPARK, "--context", "262144"]]:
            for pool in self.plan(*arguments)["pools"]:
                used = sum(item["bytes"] for item in pool["items"])
                self.assertEqual(pool["used_bytes"], used)
                if pool["capacity_bytes"]:
                    self.assertEqual(pool["free_bytes"], pool["capacity_bytes"] - used)
                for item in pool["items"]:
                    self.assertTrue(item["formula"] and item["source"], item)

    def test_fp8_keys_and_values_take_half(self):
        f16, fp8 = (self.plan(*NVFP4, *SPARK, "--kv", kv) for kv in ["f16", "fp8"])
        self.assertEqual(keys_and_values(f16), 2 * keys_and_values(fp8))
        self.assertEqual(keys_and_values(fp8), 12 * 1024)
        # A published pool of 16.5 GB held 992,584 tokens: the other terms are in it, and are named.
        others = [term for term in fp8["kv"]["terms"] if not term["name"].startswith("keys and values")]
        self.assertTrue(others)
        drafting = self.plan(*NVFP4, *SPARK, "--kv", "fp8", "--speculate", "3")
        self.assertTrue(fp8["kv"]["bytes_per_token"] < drafting["kv"]["bytes_per_token"] <= 1.05 * 16.5e9 / 992_584)

    def test_states_and_drafts_take_memory(self):
        plain, drafting = (self.plan(*NVFP4, *SPARK, "--speculate", n) for n in [0, 3])
        self.assertGreater(item_bytes(drafting, "state"), item_bytes(plain, "state"))
        half = self.plan(*NVFP4, *SPARK, "--state", "bf16")
        self.assertLess(item_bytes(half, "state"), item_bytes(plain, "state"))


class Reserve(PlanTest):
    """What a published recipe has room for, and how it failed before."""

    def test_99_gb_and_a_table_of_30_in_121(self):
        given = [*NVFP4, *SPARK, "--weights", "99GB", "--table", "30GB", "--visible", "121GB"]
        resident = self.plan(*given, "--placement", "device", fits=False)
        self.assertEqual(weights_of(resident) + item_bytes(resident, "conditional-memory table") - 121 * GB, 8 * GB)
        self.assertRegex(resident["verdict"], r"\b8\.0 GB\b")
        self.assertIn("before any keys and values", resident["verdict"])
        self.assertGreater(resident["missing_bytes"], 8 * GB)
        on_nvme = self.plan(*given, "--placement", "nvme", fits=False)
        self.assertEqual(on_nvme["pools"][0]["capacity_bytes"] - weights_of(on_nvme), 22 * GB)
        self.assertIn("reserve", on_nvme["verdict"])
        self.assertIn("22.0 GB", on_nvme["verdict"])
        self.assertGreaterEqual(item_bytes(on_nvme, "host reserve") + item_bytes(on_nvme, "table cache"), 24 * GIB)

    def test_what_the_recipe_that_works_leaves(self):
        plan = self.plan(*NVFP4, *SPARK, "--weights", "73.97GiB", "--host-reserve", "26GiB")
        self.near(plan["pools"][0]["capacity_bytes"] / GIB, 121.6, 0.001)
        reserved = item_bytes(plan, "host reserve") + item_bytes(plan, "table cache")
        self.near((plan["pools"][0]["capacity_bytes"] - weights_of(plan) - reserved) / GIB, 21.6, 0.01)

    def test_a_fraction_outside_the_narrow_band(self):
        """C23: 0.65 of the memory is gone before the first key; 0.72 leaves 8.2 GiB."""
        given = [*NVFP4, *SPARK, "--weights", "73.97GiB", "--other", "5.4GiB"]
        low = self.plan(*given, "--memory-fraction", "0.65", fits=False)
        self.assertEqual((low["kv"]["bytes"], low["kv"]["tokens"]), (0, 0))
        self.assertRegex(" ".join(low["warnings"]), r"-0\.3\d? GiB|-0\.4 GiB")
        self.assertIn("fraction", low["verdict"])
        high = self.plan(*given, "--memory-fraction", "0.72")
        self.near(high["kv"]["bytes"] / GIB, 8.2)
        for plan in [low, high]:
            least, most = plan["memory_fraction_band"]
            self.assertTrue(0.65 < least < 0.72 < most < 0.8, plan["memory_fraction_band"])
            self.assertRegex(" ".join(plan["warnings"]), "narrow|between")
        too_much = self.plan(*given, "--memory-fraction", "0.95")
        self.assertIn("cut from", " ".join(too_much["warnings"]))

    def test_keys_and_values_are_cut_for_the_host(self):
        """C24: 22 GiB were asked for, 16.7 are what the host's reserve leaves."""
        given = [*NVFP4, *SPARK, "--weights", "73.97GiB", "--other", "4.93GiB", "--host-reserve", "26GiB",
                 "--memory-fraction", "0.83"]
        plan = self.plan(*given)
        self.near(plan["kv"]["asked_bytes"] / GIB, 22, 0.01)
        self.near(plan["kv"]["bytes"] / GIB, 16.7, 0.01)
        message = next(text for text in plan["warnings"] if "cut from" in text)
        for words in ["22.0 GiB", "16.7 GiB", "reserve", "26.0 GiB"]:
            self.assertIn(words, message)
        too_long = self.plan(*given, "--context", "262144", "--concurrency", "8", fits=False)
        self.assertIn("context", too_long["verdict"])

    def test_page_cache_counts_as_available(self):
        """C30: files that were read fill memory that is there for the asking."""
        def kernel(key):
            with open("/proc/meminfo") as file:
                text = file.read()
            return int(re.search(rf"^{key}: +(\d+)", text, re.MULTILINE).group(1)) * 1024

        path = self.folder / "read"
        with path.open("wb") as file:
            file.truncate(GIB)
        with path.open("rb") as file:
            while file.read(1 << 24):
                pass
        plan = json.loads(self.run_program("plan", MODEL, "--this-machine", "--host-reserve", "1MiB", "--json").output)
        pools = [pool for pool in plan["pools"] if any(item["name"] == "host reserve" for item in pool["items"])]
        reserve = next(item["bytes"] for item in pools[0]["items"] if item["name"] == "host reserve")
        in_use = pools[0]["capacity_bytes"] - kernel("MemAvailable")
        if kernel("Cached") < 768 << 20 or pools[0]["capacity_bytes"] < kernel("MemTotal") * 0.9:
            self.skipTest("this machine keeps no page cache of a GiB, or limits the process")
        self.assertLess(reserve, in_use + (512 << 20))
        self.assertLess(reserve, kernel("MemTotal") - kernel("MemFree") - (256 << 20))


class DeepSeek(PlanTest):
    def test_the_model(self):
        plan = self.plan(*DEEPSEEK, *SPARK, "--devices", "8")
        self.near(plan["model"]["bytes_total"], 510.3 * GB, 0.01)
        self.assertEqual(plan["model"]["bytes_table"], 202_758_032_400)
        parameters = {part["part"]: part["parameters"] for part in plan["model"]["parts"]}
        self.near(sum(parameters.values()), 763e9, 0.01)
        self.near(parameters["conditional-memory table"], 196.6e9, 0.001)
        text = re.sub(r"\s+", " ", self.succeed("plan", *DEEPSEEK, *SPARK, "--devices", "8", "--explain").output)
        per_token = re.findall(r"a token reads (\d+) rows, ([\d,]+) bytes", text)
        self.assertEqual(sum(int(rows) for rows, _ in per_token), 48)
        self.assertEqual(sum(int(count.replace(",", "")) for _, count in per_token), 12_672)

    def test_four_sparks_need_the_tables_on_nvme(self):
        plan = self.plan(*DEEPSEEK, *SPARK, "--devices", "4")
        self.assertEqual(plan["table"]["placement"], "nvme")
        self.assertEqual((plan["machine"]["nodes"], plan["machine"]["tp"]), (4, 4))
        self.plan(*DEEPSEEK, *SPARK, "--devices", "4", "--placement", "device", fits=False)

    def test_on_eight_sparks_both_fit(self):
        resident, on_nvme = (self.plan(*DEEPSEEK, *SPARK, "--devices", "8", "--placement", placement)
                             for placement in ["device", "nvme"])
        self.near(item_bytes(resident, "conditional-memory table"), 25.3 * GB, 0.01)
        self.near(item_bytes(resident, "conditional-memory table") / GIB, 23.6, 0.01)
        self.near(left_for_kv(on_nvme) - left_for_kv(resident), 25.3 * GB)
        self.assertGreater(on_nvme["kv"]["tokens"], resident["kv"]["tokens"])
        self.assertEqual(self.plan(*DEEPSEEK, *SPARK, "--devices", "8")["table"]["placement"], "device")


class Speed(PlanTest):
    def test_q4_on_a_spark_without_speculation(self):
        speed = self.plan(*Q4, *SPARK)["speed"]
        self.near(speed["decode_bound_tok_s"], 71)
        self.near(speed["decode_tok_s"], 27.8, 0.2)
        self.near(sum(term["ms"] for term in speed["step"]), 1000 / speed["decode_tok_s"], 0.01)
        self.assertEqual(speed["tokens_per_step"], 1)
        self.assertTrue(speed["assumptions"])

    def test_speculation_multiplies_what_is_looked_up(self):
        plain, drafting = (self.plan(*NVFP4, *SPARK, "--speculate", n) for n in [0, 3])
        self.assertGreater(drafting["speed"]["tokens_per_step"], 1.5)
        self.assertGreater(drafting["speed"]["decode_tok_s"], 1.2 * plain["speed"]["decode_tok_s"])
        self.assertTrue(34 * 0.8 <= drafting["speed"]["decode_tok_s"] <= 49 * 1.2, drafting["speed"]["decode_tok_s"])
        # Of the rows of rejected drafts nothing comes of use: more reads for each token that comes out.
        reads = [plan["table"]["reads_per_s_decode"] / plan["speed"]["decode_tok_s"] for plan in [plain, drafting]]
        self.assertGreater(reads[1], reads[0])

    def test_concurrency_shares_what_is_read(self):
        one, eight = (self.plan(*NVFP4, *SPARK, "--concurrency", n, "--context", "8192")["speed"] for n in [1, 8])
        self.assertGreater(eight["decode_total_tok_s"], one["decode_total_tok_s"])
        self.assertLess(eight["decode_tok_s"], one["decode_tok_s"])
        self.near(eight["decode_total_tok_s"], 8 * eight["decode_tok_s"], 0.001)
        self.assertEqual(one["decode_bound_tok_s"], eight["decode_bound_tok_s"])

    def test_asked_speeds_set_the_reads(self):
        plan = self.plan(*NVFP4, *SPARK, "--decode-tok-s", "100", "--prefill-tok-s", "10000", "--memory", "64MiB")
        table = plan["table"]
        self.near(table["reads_per_s_decode"], 1600 * (1 - table["hit_share"]), 0.01)
        self.assertLessEqual(table["reads_per_s_prefill"], 160_000)
        more = self.plan(*NVFP4, *SPARK, "--decode-tok-s", "100", "--memory", "8GiB")["table"]
        self.assertGreater(more["hit_share"], table["hit_share"])
        self.assertLess(more["reads_per_s_decode"], table["reads_per_s_decode"])

    def test_targets(self):
        targets = self.plan(*NVFP4, *SPARK)["targets"]
        self.assertEqual((targets["ttft_ms"], targets["tok_s"]), (1000, 20))
        plan = self.plan(*NVFP4, *SPARK, "--target-ttft-ms", "1", "--target-tok-s", "100000")
        self.assertFalse(plan["targets"]["ttft_met"] or plan["targets"]["tok_s_met"])
        plan = self.plan(*NVFP4, *SPARK, "--target-ttft-ms", "100000", "--target-tok-s", "0.1")
        self.assertTrue(plan["targets"]["ttft_met"] and plan["targets"]["tok_s_met"])


class Views(PlanTest):
    def test_search_finds_the_fewest_devices(self):
        arguments = [*DEEPSEEK, *SPARK, "--devices", "8", "--search"]
        searched = self.plan(*arguments)["searched"]
        best = searched[0]
        self.assertTrue(best["fits"])
        self.assertEqual(best["devices"], 4)
        self.assertEqual(best["placement"], "nvme")
        self.assertFalse(any(one["fits"] for one in searched if one["devices"] < 4))
        self.assertTrue(any(one["fits"] and one["placement"] == "device" for one in searched))
        text = self.run_program("plan", *arguments, environment={"LC_ALL": "C"}).output
        self.assertEqual(text.count("\n  > "), 1)
        self.assertIn("Take the marked one", text)

    def test_a_search_in_which_nothing_fits_ends_with_1(self):
        ended = self.run_program("plan", *DEEPSEEK, *SPARK, "--devices", "2", "--search")
        self.assertEqual(ended.code, NOT_SO)
        self.assertIn("None fits", ended.output)

    def test_price(self):
        plan = self.plan(*NVFP4, *SPARK, "--price-per-hour", "3.6")
        self.near(plan["price_per_million_tokens"], 1000 / plan["speed"]["decode_total_tok_s"], 0.001)
        self.assertIsNone(self.plan(*NVFP4, *SPARK)["price_per_million_tokens"])

    def test_compare_placements(self):
        compared = self.plan(*NVFP4, *RTX_PRO, "--compare", "nvme,pinned")["compared"]
        self.assertEqual([(one["name"], one["placement"]) for one in compared], [("nvme", "nvme"), ("pinned", "pinned")])
        listed, apart = (self.run_program("plan", *NVFP4, *RTX_PRO, "--compare", *names).output
                         for names in [["nvme,pinned"], ["nvme", "pinned"]])
        self.assertEqual(listed, apart)
        self.assertIn("upper bound tok/s", listed)

    def test_compare_devices(self):
        names = ["dgx-spark", "rtx-pro-6000"]
        alone = self.plan(*NVFP4, "--compare", *names)["compared"]
        self.assertEqual([one["device"] for one in alone], names)
        beside = self.plan(*NVFP4, *SPARK, "--compare", "rtx-pro-6000")["compared"]
        self.assertEqual(beside, alone)
        mixed = self.plan(*NVFP4, *SPARK, "--compare", "nvme,device")["compared"]
        self.assertEqual([one["fits"] for one in mixed], [True, False])
        none = self.run_program("plan", *NVFP4, *SPARK, "--compare", "device,host")
        self.assertEqual(none.code, NOT_SO, none.output)

    def test_checklist(self):
        checks = self.plan(*NVFP4, *SPARK, "--checklist")["checklist"]
        self.assertGreaterEqual(len(checks), 5)
        self.assertTrue(all(check["what"] and check["command"] for check in checks))
        text = self.succeed("plan", *NVFP4, *SPARK, "--checklist").output
        self.assertEqual(re.findall(r"^ *(\d+)\. ", text, re.MULTILINE), [str(n + 1) for n in range(len(checks))])

    def test_recipes_say_what_cannot_run(self):
        recipes = self.plan(*NVFP4, *SPARK)["recipes"]
        self.assertEqual(set(recipes), {"llama_cpp", "vllm", "sglang"})
        self.assertTrue(any(recipe["runs"] for recipe in recipes.values()))
        for recipe in recipes.values():
            self.assertEqual(recipe["runs"], not recipe["limits"])
            for limit in recipe["limits"]:
                self.assertTrue(limit["reason"] and limit["source"], limit)
        quantised = json.loads(self.run_program("plan", *Q4, *SPARK, "--kv", "q8_0", "--json").output)
        self.assertFalse(quantised["recipes"]["llama_cpp"]["runs"])
        self.assertIn("llama.cpp", quantised["verdict"])

    def test_explain_has_every_source(self):
        text = self.succeed("plan", *Q4, *SPARK, "--explain").output
        plan = self.plan(*Q4, *SPARK)
        flat = re.sub(r"\s+", " ", text)
        for pool in plan["pools"]:
            for item in pool["items"]:
                self.assertIn(" ".join(item["formula"].split()), flat)
                self.assertIn(" ".join(item["source"].split()), flat)
        for assumption in plan["speed"]["assumptions"] + plan["table"]["assumptions"]:
            self.assertIn(" ".join(assumption.split()), flat)
        for candidate in plan["table"]["candidates"]:
            self.assertIn(" ".join(candidate["reason"].split()), flat)


class Page(PlanTest):
    def test_can_be_read_in_one_look(self):
        for arguments in [[*NVFP4, *SPARK], [*NVFP4, *RTX_PRO], [*Q4, *SPARK]]:
            text = self.succeed("plan", *arguments, environment={"LC_ALL": "C.UTF-8"}).output
            lines = text.split("\n")
            self.assertLessEqual(len(lines), 60, text)
            self.assertLessEqual(max(len(line) for line in lines), 100, text)
            self.assertIn("fits", lines[0])
            self.assertIn("█", text)
            self.assertIn("upper bound", text)
            self.assertIn("estimate", text)

    def test_the_locale_decides_the_letters_and_a_file_has_no_colours(self):
        for environment in [{"LC_ALL": "C"}, {"LC_ALL": "", "LC_CTYPE": "", "LANG": ""}]:
            text = self.succeed("plan", *NVFP4, *SPARK, environment=environment).output
            self.assertTrue(text.isascii(), text)
            self.assertNotIn("\033", text)

    def on_terminal(self, environment, columns):
        """What a terminal of that width is shown."""
        import fcntl
        import pty
        import struct
        import termios
        outer, inner = pty.openpty()
        fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
        process = subprocess.Popen([PROGRAM, "plan", *NVFP4, *SPARK], stdout=inner, stderr=subprocess.PIPE,
                                   env={**os.environ, **environment})
        os.close(inner)
        shown = b""
        while True:
            try:
                more = os.read(outer, 1 << 16)
            except OSError:  # the other side is closed
                break
            if not more:
                break
            shown += more
        os.close(outer)
        process.communicate()
        self.assertEqual(process.returncode, DONE)
        return shown.decode().replace("\r\n", "\n")

    def test_a_terminal_has_colours_and_a_width(self):
        coloured = self.on_terminal({"NO_COLOR": ""}, 80)
        self.assertIn("\033[", coloured)
        plain = self.on_terminal({"NO_COLOR": "1"}, 80)
        self.assertNotIn("\033", plain)
        self.assertEqual(re.sub("\033\\[[0-9;]*m", "", coloured), plain)
        launch = plain.index("\nLaunch with")
        self.assertLessEqual(max(len(line) for line in plain[:launch].split("\n")), 80, plain)

    def test_what_does_not_fit_is_printed_in_full(self):
        ended = self.run_program("plan", *NVFP4, *SPARK, "--placement", "device")
        self.assertEqual(ended.code, NOT_SO)
        for words in ["does not fit", "missing", "KV cache", "Speed", "Table of"]:
            self.assertIn(words, ended.output)


class Paths(PlanTest):
    def under(self, memory_bytes, *arguments):
        """The plan, made within an address space of so many bytes; of any size where a sanitizer needs it."""
        limit = None if SANITIZED else lambda: resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
        ended = Ended(subprocess.run([PROGRAM, "plan", *map(str, arguments), "--json"], capture_output=True,
                                     preexec_fn=limit))
        self.assertEqual(ended.code, DONE, ended.messages)
        return json.loads(ended.output)

    def test_tidepool_in_both_forms(self):
        folder = checkpoints.write_checkpoint(self.folder / "tidepool", checkpoints.TIDEPOOL_CONFIG,
                                              [checkpoints.tidepool_tensors()])
        plain, sharded = self.plan(MODEL, *SPARK), self.plan(folder, *SPARK)
        self.assertEqual(plain["model"]["bytes_table"], TABLE_BYTES)
        self.assertEqual(sharded["model"]["bytes_table"], TABLE_BYTES // 34 * 32)
        for plan, source in [(plain, "gguf"), (sharded, "safetensors")]:
            self.assertTrue(plan["model"]["is_measured"])
            self.assertEqual(plan["model"]["format"], source)
            self.assertEqual(plan["model"]["context_most"], 2048)
            self.assertEqual(keys_and_values(plan), 2 * 2 * 64 * 2)
            self.assertIn("routed experts", [part["part"] for part in plan["model"]["parts"]])
        experts = [next(part["parameters"] for part in plan["model"]["parts"] if part["part"] == "routed experts")
                   for plan in [plain, sharded]]
        self.assertEqual(experts, [4 * 8 * 3 * 96 * 512] * 2)

    def test_what_the_machine_at_hand_does_with_it(self):
        plan = self.plan(MODEL, "--this-machine")
        self.assertTrue(plan["machine"]["is_this"])
        self.assertTrue(1e8 < plan["machine"]["bandwidth_bytes_per_s"] < 2e13, plan["machine"])
        self.assertGreater(plan["pools"][-1]["capacity_bytes"], 0)

    def published(self, name):
        models = json.loads((SOURCE / "src/sizing/data/models.json").read_text())["models"]
        return next(model["config"] for model in models if model["name"] == name)

    def with_layers(self, config, name):
        return config | {"text_config": self.published(name) | config["text_config"]}

    def test_published_sizes_take_headers_alone(self):
        qwen = checkpoints.write_checkpoint(self.folder / "qwen",
                                            self.with_layers(checkpoints.QWEN_CONFIG, "Qwen3.8-Flash-Next"),
                                            checkpoints.qwen_nvfp4_shards())
        plan = self.under(256 << 20, qwen, *SPARK)
        self.assertEqual(plan["model"]["bytes_table"], 51_200_245_760)
        self.near(plan["model"]["bytes_total"], 132.7 * GB, 0.01)
        self.assertEqual(plan["table"]["placement"], "nvme")
        self.assertEqual(keys_and_values(plan), 24 * 1024)
        deepseek = checkpoints.write_checkpoint(self.folder / "deepseek",
                                                self.with_layers(checkpoints.DEEPSEEK_CONFIG, "DeepSeek-V4.1-Flash"),
                                                checkpoints.deepseek_shards())
        plan = self.under(256 << 20, deepseek, *SPARK, "--devices", "8")
        self.assertEqual(plan["model"]["bytes_table"], 202_758_032_400)
        self.near(plan["model"]["bytes_total"], 510.3 * GB, 0.01)

    def test_a_checkpoint_with_a_missing_shard(self):
        tensors = checkpoints.cut(checkpoints.tidepool_tensors(), 20_000_000)
        folder = checkpoints.write_checkpoint(self.folder / "cut", checkpoints.TIDEPOOL_CONFIG, tensors)
        missing = folder / f"model-00002-of-{len(tensors):05}.safetensors"
        missing.unlink()
        self.fail_with(REFUSED, "not_found", "plan", folder, *SPARK, words=[missing.name])

    def test_what_is_no_checkpoint(self):
        self.fail_with(REFUSED, "not_found", "plan", self.folder / "absent", *SPARK, words=[self.folder / "absent"])
        path = self.file("text", b"Once upon a time there was no model.\n" * 9)
        self.fail_with(REFUSED, "malformed", "plan", path, *SPARK, words=[path])
        self.fail_with(REFUSED, "malformed", "plan", self.file("cut.gguf", MODEL.read_bytes()[:100_000]), *SPARK)


class BadInput(PlanTest):
    def test_unknown_names_suggest_the_nearest(self):
        self.usage("--model", "qwen3.8-flash-nxt", *SPARK, words=["qwen3.8-flash-nxt", "Qwen3.8-Flash-Next"])
        self.usage(*NVFP4, "--device", "dgx-sparc", words=["dgx-sparc", "dgx-spark"])
        self.usage(*QWEN, "--precision", "NVFP5", *SPARK, words=["NVFP5", "NVFP4"])
        self.usage(*NVFP4, *SPARK, "--compare", "nvme,rtx-pro-600", words=["rtx-pro-600", "rtx-pro-6000"])
        self.usage(*NVFP4, *SPARK, "--placement", "nvm", words=["nvm", "nvme"])
        self.usage(*NVFP4, *SPARK, "--kv", "fp9", words=["fp9", "fp8"])
        self.usage(*NVFP4, *SPARK, "--engine", "vlm", words=["vlm", "vllm"])
        ended = self.run_program("plan", *NVFP4, "--devise", "dgx-spark")
        self.assertIn("unknown option '--devise' (did you mean '--device'?)", ended.messages)

    def test_names_are_taken_in_any_case(self):
        one = self.plan(*NVFP4, *SPARK)
        for model in [["--model", "Qwen/QWEN3.8-flash-next", "--precision", "nvfp4"],
                      ["--model", "qwen3.8-flash-next-nvfp4"], QWEN]:
            self.assertEqual(self.plan(*model, "--device", "DGX Spark"), one)

    def test_contradictions_in_either_order(self):
        plain = self.file("plain.gguf", gguf())
        pairs = [([*SPARK], [MODEL], [*QWEN]), ([*NVFP4], [*SPARK], ["--this-machine"]),
                 ([*SPARK], [MODEL], ["--precision", "FP8"]),
                 ([*NVFP4, *RTX_PRO], ["--placement", "host"], ["--memory", "1GiB"]),
                 ([*NVFP4, *SPARK], ["--devices", "4"], ["--tp", "8"]),
                 ([*NVFP4, *SPARK], ["--context", "1000"], ["--prompt", "2000"]),
                 ([*NVFP4, *SPARK], ["--context", "1000"], ["--context", "2000"]),
                 ([*NVFP4], [*SPARK], ["--host-memory", "64GiB"]),
                 ([*NVFP4, *SPARK], ["--devices", "2"], ["--nodes", "1"])]
        for others, one, other in pairs:
            with self.subTest(one=one, other=other):
                first = self.run_program("plan", *others, *one, *other)
                second = self.run_program("plan", *others, *other, *one)
                self.assertEqual((first.code, second.code), (USAGE, USAGE), first.messages + first.output)
                self.assertEqual(first.messages, second.messages)
                self.assertEqual(first.output + second.output, "")
        self.assertTrue(plain.exists())

    def test_something_must_be_given(self):
        self.usage(*SPARK, words=["--model"])
        self.usage(*NVFP4, words=["--device", "--this-machine"])
        self.usage(words=["--model"])

    def test_beyond_the_model(self):
        self.usage(*NVFP4, *SPARK, "--context", "262145", words=["262145", "262144"])
        self.usage(*NVFP4, *RTX_PRO, "--devices", "5", "--tp", "5", words=["--tp 5", "24"])
        self.usage(*DEEPSEEK, *SPARK, "--devices", "16", "--tp", "16", words=["--tp 16", "hash heads"])
        self.usage(*NVFP4, *SPARK, "--devices", "6", "--tp", "2", "--ep", "3", words=["--ep 3", "512"])
        self.usage(*NVFP4, *SPARK, "--devices", "4", "--dp", "3", words=["--dp 3"])

    def test_zero_and_absurd_numbers(self):
        options = {"devices": "N", "nodes": "N", "tp": "N", "ep": "N", "dp": "N", "context": "N", "concurrency": "N",
                   "prompt": "N", "output": "N", "chunk": "N", "memory-fraction": "X", "price-per-hour": "X",
                   "decode-tok-s": "X", "prefill-tok-s": "X", "target-ttft-ms": "X", "target-tok-s": "X",
                   "visible": "SIZE", "weights": "SIZE", "table": "SIZE", "memory": "SIZE"}
        values = {"N": ["0", "-1", "1.5", "many", "", "99999999999999999999"],
                  "X": ["0", "-1", "nan", "inf", "fast", "", "1e300"],
                  "SIZE": ["0", "-1GiB", "12XB", "GiB", "", "9999999TiB", "99999999999999999999"]}
        for (option, kind) in options.items():
            for value in values[kind]:
                with self.subTest(option=option, value=value):
                    ended = self.run_program("plan", *NVFP4, *SPARK, f"--{option}={value}")
                    self.assertEqual(ended.code, USAGE, ended.messages + ended.output[:300])
                    self.assertIn(f"--{option}", ended.messages)
                    self.assertEqual(len(ended.messages.strip().split("\n")), 1)
        self.usage(*NVFP4, *SPARK, "--memory-fraction", "1.01", words=["--memory-fraction 1.01"])
        self.usage(*NVFP4, *SPARK, "--speculate", "1000", words=["--speculate 1000"])
        self.usage(*NVFP4, *SPARK, "--host-reserve", "1TiB", words=["--host-reserve"])

    def test_any_combination_is_a_plan_or_an_error(self):
        for device, placement, kv, speculate, engine in itertools.product(
                ["dgx-spark", "rtx-5090", "b300"], ["auto", "device", "remote"], ["auto", "q8_0"], [0, 2],
                ["auto", "llama_cpp", "vllm"]):
            arguments = ["--model", "longcat-flash-lite", "--device", device, "--placement", placement, "--kv", kv,
                         "--speculate", speculate, "--engine", engine]
            ended = self.run_program("plan", *arguments, "--json")
            with self.subTest(arguments=arguments):
                self.assertIn(ended.code, [DONE, NOT_SO, USAGE], ended.messages)
                self.assertTrue({"fits", "error"} & set(json.loads(ended.output)))

    def test_models_without_a_table(self):
        known = [model["name"] for model in
                 json.loads((SOURCE / "src/sizing/data/models.json").read_text())["models"] if not model.get("tables")]
        self.assertGreaterEqual(len(known), 2)
        for name in known:
            with self.subTest(name):
                plan = json.loads(self.run_program("plan", "--model", name, "--device", "b300", "--json").output)
                self.assertIsNone(plan["table"])
                self.assertEqual(plan["hit_share_curve"], [])
                self.usage("--model", name, "--device", "b300", "--placement", "nvme", words=["--placement nvme"])


if __name__ == "__main__":
    unittest.main()
