"""rowtide generate: text with and without the store, its report, and how it fails."""
import contextlib
import json
import os
import pty
import subprocess
import unittest

from program import (DONE, FAILED, MODEL, PROGRAM, ProgramTest, REFUSED, ROWS, ROW_BYTES, SOURCE, TABLE, TABLE_BYTES,
                     TABLE_OFFSET, USAGE, gguf)

PROMPT = "The server process reads the configuration file and"
GREEDY = " then modify the configuration file for the configuration file.\n\nThe configuration file is a PostgreSQL"
SAME = ["text", "tokens", "ended", "logits_sha256", "prompt_tokens", "generated_tokens"]
KEYS = {*SAME, "prompt_seconds", "prompt_ubatches", "generate_seconds", "private_bytes", "table_bytes",
        "table_resident_bytes", "store"}
STORE_KEYS = {"rows", "bundles", "unique_rows", "hits", "reads", "bytes_read", "wait_seconds", "prefetched_rows",
              "prefetched_rows_used", "prefetch_reads", "prefetch_bytes_read", "memory_bytes", "cache_bytes",
              "index_bytes", "resident_bytes", "buffer_bytes", "budget_bytes", "mode"}
MIB = 1 << 20


class Generate(ProgramTest):
    def generate(self, *arguments, prompt=PROMPT, **options):
        return self.json("generate", "-m", MODEL, "-p", prompt, *arguments, **options)

    def test_greedy_text_is_the_same_with_and_without_the_store(self):
        served, stock = self.generate("-n", 56), self.generate("-n", 56, "--no-store")
        for key in SAME:
            self.assertEqual(served[key], stock[key], key)
        self.assertTrue(served["text"].startswith(GREEDY), served["text"])
        self.assertEqual((len(served["tokens"]), served["generated_tokens"], served["ended"]), (56, 56, False))
        self.assertRegex(served["logits_sha256"], "^[0-9a-f]{64}$")

    def test_what_the_store_counts(self):
        document = self.generate("-n", 20)
        self.assertEqual(set(document), KEYS)
        store = document["store"]
        self.assertEqual(set(store), STORE_KEYS)
        self.assertEqual(store["mode"], "cache")
        self.assertTrue(0 < store["memory_bytes"] <= store["budget_bytes"], store)
        self.assertEqual(store["memory_bytes"], sum(store[f"{part}_bytes"] for part in
                                                    ["cache", "index", "resident", "buffer"]))
        self.assertEqual(store["rows"], 16 * (document["prompt_tokens"] + 19))
        self.assertEqual(store["bundles"], store["rows"] // 8)
        self.assertTrue(0 < store["reads"] <= store["unique_rows"] <= store["rows"], store)
        self.assertGreaterEqual(store["bytes_read"], 512 * store["reads"])
        self.assertGreater(store["wait_seconds"], 0)
        self.assertLess(store["hits"] + store["unique_rows"], store["rows"] + 1)

    def test_rows_are_kept_for_when_they_are_asked_for_again(self):
        text = (SOURCE / "models" / "heldout.txt").read_text()[:700]
        kept, read_again = (self.generate("-n", 2, "--ubatch", "16", "--mode", mode, prompt=text + text)["store"]
                            for mode in ["cache", "disk"])
        self.assertEqual(kept["rows"], read_again["rows"])
        self.assertGreater(kept["hits"], 0.45 * kept["rows"])
        self.assertEqual((read_again["hits"], read_again["cache_bytes"]), (0, 0))
        self.assertLess(kept["reads"] + kept["prefetch_reads"], 0.7 * read_again["reads"])

    def test_the_next_rows_of_a_prompt_are_fetched_ahead(self):
        text = (SOURCE / "models" / "heldout.txt").read_text()[:3000]
        document = self.generate("-n", 2, "--ubatch", "64", prompt=text)
        ubatches, store = document["prompt_ubatches"], document["store"]
        self.assertEqual(sum(ubatch["tokens"] for ubatch in ubatches), document["prompt_tokens"])
        self.assertEqual({ubatch["tokens"] for ubatch in ubatches[:-1]}, {64})
        self.assertEqual(sum(ubatch["rows"] for ubatch in ubatches), 16 * document["prompt_tokens"])
        self.assertGreater(store["prefetched_rows"], 0)
        self.assertLessEqual(store["prefetched_rows_used"], store["prefetched_rows"])
        self.assertGreater(store["prefetched_rows_used"], 0)
        self.assertEqual(self.generate("-n", 2, "--ubatch", "64", "--no-store", prompt=text)["prompt_ubatches"], [])
        stock = self.generate("-n", 2, "--ubatch", "64", "--no-store", prompt=text)
        self.assertEqual(self.same_part(document), self.same_part(stock))

    def test_modes_and_budgets(self):
        stock = self.same_part(self.generate("-n", 8, "--no-store"))
        for arguments, environment, mode, budget in [
                (["--memory", "64MiB"], {}, "cache", 64 * MIB), (["--mode", "disk"], {}, "disk", None),
                (["--mode", "resident", "--memory", "100MiB"], {}, "resident", 100 * MIB),
                (["--mode", "auto"], {}, "resident", None), (["--memory", "40MiB", "--mode", "auto"], {}, "cache", 40 * MIB),
                ([], {"ROWTIDE_MEMORY": "48MiB"}, "cache", 48 * MIB), ([], {"ROWTIDE_MODE": "disk"}, "disk", None),
                (["--memory", "64MiB"], {"ROWTIDE_MEMORY": "48MiB"}, "cache", 64 * MIB),
                (["--mode", "cache"], {"ROWTIDE_MODE": "disk"}, "cache", None)]:
            with self.subTest(arguments=arguments, environment=environment):
                document = self.generate("-n", 8, *arguments, environment=environment)
                self.assertEqual(self.same_part(document), stock)
                self.assertEqual(document["store"]["mode"], mode)
                self.assertLessEqual(document["store"]["memory_bytes"], document["store"]["budget_bytes"])
                if budget:
                    self.assertEqual(document["store"]["budget_bytes"], budget)

    def test_modes_and_budgets_that_are_refused(self):
        start = ["generate", "-m", MODEL, "-p", "a"]
        for option, words in [
                (["--memory", "1G", "--mode", "disk"], ["disk", "1.000 GiB"]),
                (["--mode", "disk", "--memory", "1G"], ["disk", "1.000 GiB"]),
                (["--no-store", "--memory", "1G"], ["--memory", "--no-store"]),
                (["--memory", "1G", "--no-store"], ["--memory", "--no-store"]),
                (["--mode", "auto", "--no-store"], ["--mode", "--no-store"]),
                (["--memory", "1M"], ["1048576 bytes", "32.0 MiB or more"]), (["--memory", "much"], ["--memory", "much"]),
                (["--mode", "fast"], ["--mode", "fast"])]:
            with self.subTest(option):
                self.fail_with(USAGE, "usage", *start, *option, words=words)
        for variable, value in [("ROWTIDE_MEMORY", "much"), ("ROWTIDE_MEMORY", "0"), ("ROWTIDE_MODE", "fast"),
                                ("ROWTIDE_METRICS", "1"), ("ROWTIDE_TRACE", "1")]:
            with self.subTest(variable):
                self.fail_with(USAGE, "usage", *start, environment={variable: value}, words=[variable, value])
                self.succeed("inspect", MODEL, environment={variable: value})
                self.succeed(*start, "-n", 1, "--no-store", environment={variable: value})
        self.fail_with(USAGE, "usage", *start, "--memory", "64M", environment={"ROWTIDE_MODE": "disk"}, words=["disk"])
        self.fail_with(FAILED, "resource", *start, "--mode", "resident", "--memory", "40MiB",
                       words=[TABLE, "resident", "40.0 MiB"])
        self.fail_with(FAILED, "resource", *start, "--memory", "100TiB", words=["102400.000 GiB", "available"])

    def test_the_table_stays_on_disk(self):
        served, stock = self.generate("-n", 60), self.generate("-n", 60, "--no-store")
        self.assertEqual((served["table_bytes"], stock["table_bytes"]), (TABLE_BYTES, TABLE_BYTES))
        # The kernel maps up to 16 pages around one that was touched, so some beside the neighbouring tensor may count.
        self.assertLessEqual(served["table_resident_bytes"], 2 * 16 * os.sysconf("SC_PAGESIZE"))
        self.assertGreater(stock["table_resident_bytes"], 500_000)
        self.assertIsNone(stock["store"])

    def test_micro_batches_do_not_change_the_counts(self):
        text = PROMPT * 8
        whole, parts = self.generate("-n", 4, prompt=text), self.generate("-n", 4, "--ubatch", "7", prompt=text)
        self.assertGreater(whole["prompt_tokens"], 60)
        for key in ["tokens", "prompt_tokens"]:
            self.assertEqual(whole[key], parts[key])
        self.assertEqual(whole["store"]["rows"], parts["store"]["rows"])
        stock = self.generate("-n", 4, "--ubatch", "7", "--no-store", prompt=text)
        self.assertEqual(parts["logits_sha256"], stock["logits_sha256"])

    def test_text_is_streamed_and_the_table_follows_on_standard_error(self):
        ended = self.succeed("generate", "-m", MODEL, "-p", PROMPT, "-n", "12")
        document = self.generate("-n", 12)
        self.assertEqual(ended.output, document["text"] + "\n")
        for words in ["9 tokens", "12 tokens", "tokens/s", "rows asked", "from memory", "reads", "mode cache",
                      "waiting for rows", "22.4 MiB (23,444,224 bytes)", "of it in memory", f"serving {TABLE}"]:
            self.assertIn(words, ended.messages)
        without = self.succeed("generate", "-m", MODEL, "-p", PROMPT, "-n", "12", "--no-store")
        self.assertEqual(without.output, ended.output)
        self.assertNotIn("rows asked", without.messages)

    def test_each_token_arrives_when_it_is_chosen(self):
        process = subprocess.Popen([PROGRAM, "generate", "-m", MODEL, "-p", PROMPT, "-n", "1000"],
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.addCleanup(process.stdout.close)
        first = os.read(process.stdout.fileno(), 4096).decode()
        self.assertLess(len(first), 200)
        self.assertTrue(GREEDY.startswith(first) or first.startswith(GREEDY), first)
        self.assertIsNone(process.poll())

    def test_the_ways_to_give_a_prompt(self):
        for prompt in [PROMPT, "[a,b]", "{x}", "--json", "two\nlines \n", "gr\u00fc\u00dfe"]:
            with self.subTest(prompt):
                expected = self.generate("-n", 2, prompt=prompt)
                path = self.file("prompt", prompt)
                self.assertEqual(self.same_part(self.json("generate", "-m", MODEL, "-f", path, "-n", 2)),
                                 self.same_part(expected))
                piped = self.json("generate", "-m", MODEL, "-f", "-", "-n", 2, input=prompt.encode())
                self.assertEqual(self.same_part(piped), self.same_part(expected))

    def same_part(self, document):
        return {key: document[key] for key in SAME}

    def test_draws_follow_the_seed(self):
        arguments = ["-n", 24, "--temp", "0.9", "--seed"]
        first, again, other = (self.generate(*arguments, seed) for seed in [7, 7, 8])
        self.assertEqual(self.same_part(first), self.same_part(again))
        self.assertNotEqual(first["tokens"], other["tokens"])
        self.assertNotEqual(first["tokens"], self.generate("-n", 24)["tokens"])
        self.assertEqual(self.same_part(first), self.same_part(self.generate(*arguments, 7, "--no-store")))

    def test_the_model_ends_the_text(self):
        for seed in range(40):
            document = self.generate("-n", 400, "--temp", "0.9", "--seed", seed,
                                     prompt="And it came to pass in those days, that")
            if document["ended"]:
                break
        self.assertTrue(document["ended"], "no draw of forty ended")
        self.assertLess(document["generated_tokens"], 400)
        self.assertEqual(len(document["tokens"]), document["generated_tokens"])

    def test_a_model_without_a_table_is_told_from_one_that_is_not_served(self):
        self.fail_with(FAILED, "not_served", "generate", "-m", MODEL, "-p", "a", "-n", "2",
                       environment={"ROWTIDE_TABLES": "other*"}, words=[MODEL, TABLE, "ROWTIDE_TABLES", "--no-store"])
        self.assertEqual(self.generate("-n", 2, "--no-store", environment={"ROWTIDE_TABLES": "other*"})["store"], None)

    def test_a_plugin_from_a_file_is_not_loaded_beside(self):
        plugin = PROGRAM.parent / "librowtide-ggml.so"
        self.assertTrue(plugin.exists())
        plain = self.generate("-n", 4)
        document = self.generate("-n", 4, environment={"GGML_BACKEND_PATH": str(plugin)})
        self.assertEqual(self.same_part(document), self.same_part(plain))
        self.assertEqual(document["store"]["rows"], plain["store"]["rows"])
        stock = self.run_program("generate", "-m", MODEL, "-p", "a", "-n", "1", "--no-store",
                                 environment={"GGML_BACKEND_PATH": str(plugin)})
        self.assertNotIn("serving", stock.messages)

    def test_usage(self):
        for arguments, words in [
                (["-p", "a"], ["--model is required"]), (["-m", MODEL], ["one of -p and -f"]),
                (["-m", MODEL, "-p", "a", "-f", "b"], ["one of -p and -f"]), (["-m", MODEL, "-p", ""], ["prompt is empty"]),
                (["-m", MODEL, "-p", "a", "-n", "0"], ["-n"]), (["-m", MODEL, "-p", "a", "--temp", "-1"], ["--temp"]),
                (["-m", MODEL, "-p", "a", "--temp", "nan"], ["--temp"]),
                (["-m", MODEL, "-p", "a", "--threads", "0"], ["--threads"]),
                (["-m", MODEL, "-p", "a", "--ubatch", "0"], ["--ubatch"]),
                (["-m", MODEL, "-p", "a", "-n", "2048"], [MODEL, "1 tokens of prompt", "2048", "trained for"])]:
            with self.subTest(words[0]):
                self.fail_with(USAGE, "usage", "generate", *arguments, words=words)
        self.assertEqual(self.generate("-n", 1, prompt="a")["generated_tokens"], 1)

    def test_models_that_are_refused(self):
        absent, cut = self.folder / "absent", self.file("cut.gguf", MODEL.read_bytes()[:-1])
        for flags in [[], ["--no-store"]]:
            self.fail_with(REFUSED, "not_found", "generate", "-m", absent, "-p", "a", *flags, words=[absent])
            self.fail_with(REFUSED, "malformed", "generate", "-m", cut, "-p", "a", *flags, words=[cut, TABLE])
        plain = self.file("plain.gguf", gguf())
        self.fail_with(REFUSED, "llama", "generate", "-m", plain, "-p", "a", words=[plain, "cannot load the model", "error loading model"])
        ended = self.run_program("generate", "-m", plain, "-p", "a")
        self.assertIn("no conditional-memory table", ended.messages)
        self.fail_with(REFUSED, "not_found", "generate", "-m", MODEL, "-f", absent, words=[absent])

    def test_logits_that_are_no_numbers_are_an_error(self):
        content = bytearray(MODEL.read_bytes())
        content[TABLE_OFFSET::ROW_BYTES] = bytes(ROWS)  # every row's scale: the binary16 number 7e00, not a number
        content[TABLE_OFFSET + 1::ROW_BYTES] = b"\x7e" * ROWS
        model = self.file("nan.gguf", bytes(content))
        for flags in [[], ["--no-store"]]:
            self.fail_with(FAILED, "nan", "generate", "-m", model, "-p", PROMPT, *flags, words=["not a number"])

    def test_a_read_that_fails_while_generating(self):
        model = self.file("shrinking.gguf", MODEL.read_bytes())
        process = subprocess.Popen([PROGRAM, "generate", "-m", model, "-p", PROMPT, "-n", "2000"],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        process.stdout.read(8)
        os.truncate(model, TABLE_OFFSET + 4096)  # only the table's rows lie behind
        text, messages = process.communicate(timeout=60)
        self.assertEqual(process.returncode, FAILED, messages)
        last = messages.decode().splitlines()[-1]
        for words in ["rowtide: computing token ", " failed: ", str(model), TABLE]:
            self.assertIn(words, last)

    def test_output_that_cannot_be_written_stops_generation(self):
        with open("/dev/full", "wb") as full:
            ended = self.run_program("generate", "-m", MODEL, "-p", PROMPT, "-n", "2000", output=full)
        self.assertEqual(ended.code, FAILED)
        self.assertIn("standard output cannot be written", ended.messages)
        self.assertNotIn("tokens/s", ended.messages)

    def test_bytes_that_are_no_text_yet_are_replaced_in_json(self):
        document = self.generate("-n", 300, "--temp", "50", "--seed", 1)
        self.assertEqual(document["generated_tokens"], 300)
        self.assertIn("\ufffd", document["text"])

    def test_a_model_without_a_table_runs_with_a_note(self):
        width, vocabulary = 32, ["<unk>", "<s>", "</s>", "\u2581a"]
        square, wide = [width, width], [width, 2 * width]
        block = {"attn_norm": [width], "attn_q": square, "attn_k": square, "attn_v": square, "attn_output": square,
                 "ffn_norm": [width], "ffn_gate": wide, "ffn_up": wide, "ffn_down": wide[::-1]}
        model = self.file("llama.gguf", gguf({
            "llama.context_length": 64, "llama.embedding_length": width, "llama.block_count": 1,
            "llama.feed_forward_length": 2 * width, "llama.attention.head_count": 2, "llama.rope.dimension_count": 16,
            "llama.attention.layer_norm_rms_epsilon": 1e-5, "tokenizer.ggml.model": "llama",
            "tokenizer.ggml.tokens": vocabulary, "tokenizer.ggml.scores": [0.0] * 4,
            "tokenizer.ggml.token_type": [2, 3, 3, 1]},
            {"token_embd.weight": [width, len(vocabulary)], "output_norm.weight": [width],
             **{f"blk.0.{name}.weight": shape for name, shape in block.items()}}))
        ended = self.succeed("generate", "-m", model, "-p", "a", "-n", "3", "--json")
        document = json.loads(ended.output)
        self.assertEqual((document["generated_tokens"], document["store"]["rows"], document["table_bytes"]), (3, 0, 0))
        self.assertIsNone(document["table_resident_bytes"])
        self.assertIn("holds no conditional-memory table, so there is nothing to serve", ended.messages)

    def test_a_long_prompt_shows_its_progress_on_a_terminal_only(self):
        text = (SOURCE / "models" / "heldout.txt").read_bytes()[:5000]
        arguments = ["generate", "-m", MODEL, "-f", self.file("long.txt", text), "-n", "1", "--ubatch", "4"]
        terminal, end = pty.openpty()
        with open(terminal, "rb", buffering=0) as screen:
            process = subprocess.Popen([PROGRAM, *arguments], stdout=subprocess.DEVNULL, stderr=end)
            os.close(end)
            seen = b""
            with contextlib.suppress(OSError):  # the terminal's other side is gone
                while part := screen.read(4096):
                    seen += part
            self.assertEqual(process.wait(), DONE)
        self.assertRegex(seen.decode(), r"\rprompt \[#* *\] +\d+ %")
        self.assertIn("tokens/s", seen.decode())
        self.assertNotIn("\r", self.succeed(*arguments).messages)


if __name__ == "__main__":
    unittest.main()
