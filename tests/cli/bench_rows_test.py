"""rowtide bench rows: every source, trace and state, what is reported, and what is refused. No speeds are judged."""
import ctypes
import math
import mmap
import os
import pathlib
import shutil
import struct
import subprocess
import tempfile
import time
import unittest

import checkpoints
from program import (DONE, FAILED, MODEL, PROGRAM, ProgramTest, REFUSED, ROW_BYTES, ROWS, TABLE_BYTES, TABLE_OFFSET,
                     USAGE, gguf)

NOT_SO = 1
METHODS = ["rowtide", "memcpy", "fio", "mmap", "mmap_random", "mmap_willneed", "pread1", "pread8", "pread32", "uring64"]
MAPPED = ["mmap", "mmap_random", "mmap_willneed", "pread1", "pread8", "pread32"]  # read through the page cache
REPORT = {"file", "device", "block", "read_ahead_bytes", "rows", "row_bytes", "trace", "state", "repeat", "cold_share_left",
          "load_average_before", "load_average_after", "results", "ratios", "skipped", "process"}
RESULT = {"method", "state", "batch_rows", "rows_per_s", "reads_per_s", "least", "most", "spread", "p50_us", "p90_us",
          "p99_us", "cpu_us_per_row", "hit_share", "runs", "batches", "rows", "unique_rows", "reads", "bytes_read",
          "blocks_needed", "blocks_read", "blocks_read_before", "wait_seconds", "switches", "syscalls_per_batch"}


class BenchRowsTest(ProgramTest):
    def setUp(self):
        # Beside the program, which lies on a disk: files of a file system in memory are never cold.
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="bench-rows-", dir=PROGRAM.parent))
        self.addCleanup(shutil.rmtree, self.folder)

    def model(self):
        """A copy that no other test maps."""
        return shutil.copy(MODEL, self.folder / "model.gguf")

    def tokens(self, count):
        return self.file("tokens.i32le", struct.pack(f"<{count}i", *(i * i % 4001 for i in range(count))))

    def report(self, *arguments):
        """A report with every key and nothing that contradicts itself."""
        report = self.json("bench", "rows", *arguments)
        self.assertEqual(set(report) - {"rowtide"}, REPORT)
        for result in report["results"]:
            self.assertEqual(set(result), RESULT)
            self.check_result(result, report)
        self.check_ratios(report)
        return report

    def check_result(self, result, report):
        self.assertGreater(result["least"], 0)
        self.assertLessEqual(result["least"], result["most"])
        if result["method"] == "fio":
            self.assertIsNone(result["rows_per_s"])
            self.assertEqual(result["state"], "cold")
            return
        self.assertTrue(result["least"] <= result["rows_per_s"] <= result["most"])
        self.assertAlmostEqual(result["spread"], (result["most"] - result["least"]) / result["rows_per_s"])
        self.assertTrue(0 < result["p50_us"] <= result["p90_us"] <= result["p99_us"])
        self.assertEqual(result["rows"], result["batches"] * result["batch_rows"])
        self.assertTrue(0 < result["unique_rows"] <= result["rows"])
        self.assertLessEqual(result["blocks_needed"], 2 * result["unique_rows"])
        if result["hit_share"] is not None:
            self.assertTrue(0 <= result["hit_share"] <= 1, result)
        if result["bytes_read"] is not None:
            self.assertEqual(result["blocks_read"], result["bytes_read"] // report["block"])

    def check_ratios(self, report):
        by_name = {(str(result["batch_rows"]), result["method"]): result for result in report["results"]}
        for batch, ratios in report["ratios"].items():
            self.assertEqual(set(ratios), {name for size, name in by_name if size == batch} - {"rowtide"})
            for name, ratio in ratios.items():
                self.assertTrue(ratio["least"] <= ratio["ratio"] <= ratio["most"])
                verdict = ("one run" if report["repeat"] == 1 else "faster" if ratio["least"] > 1 else
                           "slower" if ratio["most"] < 1 else "within the spread")
                self.assertEqual(ratio["verdict"], verdict)
                self.assertEqual(ratio["of"], "reads_per_s" if name == "fio" else "rows_per_s")
                if report["repeat"] == 1:
                    theirs, ours = by_name[batch, name], by_name[batch, "rowtide"]
                    self.assertAlmostEqual(ratio["ratio"], ours[ratio["of"]] / theirs[ratio["of"]])

    def result(self, report, method, batch=None):
        found = [r for r in report["results"] if r["method"] == method and batch in (None, r["batch_rows"])]
        self.assertEqual(len(found), 1, report)
        return found[0]

    def test_all_methods_cold_on_a_checkpoint(self):
        report = self.report(self.model(), "--batch", "16,256", "--rows", "256", "--repeat", "2")
        self.assertEqual((report["rows"], report["row_bytes"]), (ROWS, ROW_BYTES))
        self.assertLess(report["cold_share_left"], 0.01)
        left_out = {skipped["method"] for skipped in report["skipped"]}
        self.assertLessEqual(left_out, {"fio", "uring64"})  # not installed, refused
        for batch in [16, 256]:
            for method in set(METHODS) - left_out:
                result = self.result(report, method, batch)
                self.assertEqual(result["state"], "warm" if method == "memcpy" else "cold")
                if method != "fio" and method != "memcpy":
                    self.assertEqual(result["rows"], 2 * 256)
                if method in MAPPED:
                    self.assertLess(result["hit_share"], 0.05)

    def test_rowtide_reads_the_blocks_that_are_needed_and_no_others(self):
        for trace in ["uniform", "prefill"]:
            report = self.report(self.model(), "--method", "rowtide,uring64", "--batch", "2048", "--rows", "2048",
                                 "--trace", trace)
            ours = self.result(report, "rowtide")
            self.assertEqual(ours["blocks_read"], ours["blocks_needed"])
            self.assertLessEqual(ours["reads"], ours["blocks_needed"])
            if not report["skipped"]:
                self.assertEqual(self.result(report, "uring64")["reads"], 3 * 2048)

    def test_a_bare_file(self):
        file = self.file("table.bin", os.urandom(4096) + os.urandom(160 * 5000 + 7))
        report = self.report("--raw", file, "--row-bytes", 160, "--offset", 4096, "--batch", "128", "--rows", "512",
                             "--repeat", "1")
        self.assertEqual((report["rows"], report["row_bytes"], report["file"]), (5000, 160, str(file)))
        report = self.report("--raw", file, "--row-bytes", 160, "--trace", "decode", "--rows", "160", "--repeat", "1",
                             "--method", "rowtide,mmap")
        self.assertEqual(self.result(report, "rowtide")["batch_rows"], 16)

    def test_a_file_made_for_the_purpose(self):
        for row_bytes, rows in [([], 11650), (["--row-bytes", 264], 3971)]:
            report = self.report("--synthetic", "1MiB", *row_bytes, "--dir", self.folder, "--rows", "512", "--repeat", "1",
                                 "--method", "rowtide,mmap,pread8,memcpy")
            self.assertEqual(report["rows"], rows)
            self.assertEqual([r["batch_rows"] for r in report["results"] if r["method"] == "mmap"], [16, 128, 2048])
            self.assertEqual(list(self.folder.iterdir()), [])

    def test_traces(self):
        model, tokens = self.model(), self.tokens(1200)
        for arguments, batch in [(["--trace", "zipf", "--batch", "64"], 64), (["--trace", "decode"], 16),
                                 (["--trace", "decode", "--batch", "48"], 48), (["--trace", "prefill"], 8192),
                                 (["--trace", "text", "--text", tokens], 8192),
                                 (["--trace", "text", "--text", tokens, "--batch", "32", "--before", "320"], 32),
                                 (["--trace", "decode", "--text", tokens], 16)]:
            with self.subTest(arguments):
                report = self.report(model, *arguments, "--rows", "256", "--repeat", "1", "--method", "rowtide,pread1")
                self.assertEqual(report["trace"], arguments[1])
                ours, theirs = self.result(report, "rowtide"), self.result(report, "pread1")
                self.assertEqual(ours["batch_rows"], batch)
                # Other rows, but of the same shape: but for collisions, text repeats itself the same way for both.
                if arguments[1] in ("prefill", "text") or "--text" in arguments:
                    self.assertAlmostEqual(ours["unique_rows"] / theirs["unique_rows"], 1, delta=0.03)
                if batch == 8192:
                    self.assertLess(ours["unique_rows"], ours["rows"])

    def test_warm(self):
        report = self.report(self.model(), "--state", "warm", "--rows", "4096", "--repeat", "2")
        self.assertEqual({skipped["method"] for skipped in report["skipped"]}, {"fio", "uring64"})
        self.assertEqual(len(report["results"]), 3 * (len(METHODS) - 2))
        for result in report["results"]:
            self.assertEqual(result["state"], "warm")
            self.assertGreaterEqual(result["hit_share"], 0.99)
            self.assertGreaterEqual(result["rows"], 2 * 4096)
        self.assertEqual(self.result(report, "mmap", 128)["reads"], 0)
        self.assertEqual(self.result(report, "rowtide", 128)["bytes_read"], 0)

    def test_every_form_of_checkpoint(self):
        """Rows are drawn all over the table, whatever ids a family knows, and without a tokenizer.json too."""
        tokens = self.tokens(600)
        for name, small, per_token in [("deepseek", checkpoints.tiny_deepseek(), 24),
                                       ("longcat", checkpoints.toy_longcat(), 4),
                                       ("gemma", checkpoints.small_gemma(), 1),
                                       ("qwen", checkpoints.micro_qwen("BF16"), 4)]:
            folder = small.write(self.folder / name)
            rows = len(next(iter(small.rows.values())))
            for trace in [["uniform"], ["zipf"], ["text", "--text", tokens]]:
                with self.subTest(name, trace=trace[0]):
                    batch = min(rows, 24 * per_token) // per_token * per_token
                    report = self.report(folder, "--trace", *trace, "--method", "pread1", "--batch", batch,
                                         "--rows", 8 * batch, "--repeat", "1")
                    result = self.result(report, "pread1")
                    expected = rows * (1 - math.exp(-batch / rows))  # distinct rows of a uniform batch
                    share = result["unique_rows"] / result["batches"] / expected
                    self.assertTrue(0.3 < share < 1.5, share)
            report = self.report(folder, "--trace", "decode", "--method", "rowtide", "--rows", "96", "--repeat", "1")
            self.assertEqual(self.result(report, "rowtide")["batch_rows"], per_token)
        self.fail_with(USAGE, "usage", "bench", "rows", self.folder / "deepseek", "--trace", "decode", "--batch", "16",
                       words=["16 is no multiple of 24"])

    def test_a_copy_holds_what_each_batch_size_asks_for(self):
        report = self.report("--synthetic", "16MiB", "--dir", self.folder, "--state", "warm", "--trace", "decode", "--batch",
                             "16,2048", "--rows", "4096", "--repeat", "1", "--method", "memcpy")
        self.assertEqual(sorted(result["batch_rows"] for result in report["results"]), [16, 2048])

    def test_warm_rows_that_do_not_fit_the_budget(self):
        self.fail_with(FAILED, "resource", "bench", "rows", "--synthetic", "128MiB", "--row-bytes", "512", "--dir",
                       self.folder, "--method", "rowtide", "--state", "warm", "--memory", "32MiB", "--batch", "2048",
                       words=["131072 rows", "--memory"])

    def test_resident(self):
        report = self.report("--synthetic", "4MiB", "--dir", self.folder, "--state", "resident", "--memory", "64MiB",
                             "--rows", "4096", "--batch", "128", "--repeat", "1", "--method", "rowtide,memcpy,mmap,pread8")
        self.assertEqual(len(report["results"]), 4)
        for result in report["results"]:
            self.assertEqual((result["state"], result["hit_share"], result["bytes_read"]), ("resident", 1, 0))

    def test_mixed(self):
        report = self.report(self.model(), "--state", "mixed:0.5", "--rows", "2048", "--batch", "1024", "--repeat", "1",
                             "--method", "rowtide,mmap_random,pread1,memcpy")
        self.assertTrue(0.4 < self.result(report, "rowtide")["hit_share"] < 0.6)
        for method in ["mmap_random", "pread1"]:  # a page that is warm for one row may hold another
            self.assertTrue(0.4 < self.result(report, method)["hit_share"] < 0.8)
        self.assertEqual(self.result(report, "memcpy")["state"], "warm")

    def test_what_was_served_before_is_warm(self):
        tokens = self.file("tokens.i32le", struct.pack("<40i", *range(20), *range(20)))
        report = self.report(self.model(), "--trace", "text", "--text", tokens, "--batch", "32", "--rows", "320",
                             "--before", "320", "--repeat", "1", "--method", "rowtide")
        # The second time round, all n-grams but those that reach back over the seam are known.
        self.assertEqual(self.result(report, "rowtide")["hit_share"], 1 - 3 * 8 / 320)

    def test_for_people(self):
        text = self.succeed("bench", "rows", self.model(), "--batch", "16", "--rows", "64", "--repeat", "1").output
        for words in ["rows/s", "rowtide", "mmap_willneed", "one run", "load average", f"{ROWS:,} rows of {ROW_BYTES} bytes"]:
            self.assertIn(words, text)

    def test_the_process_alone_is_small(self):
        report = self.report(self.model(), "--method", "rowtide", "--memory", "256MiB", "--repeat", "1")
        self.assertLess(report["process"]["peak_rss_bytes"], (256 + 64) << 20)
        self.assertEqual(report["rowtide"]["budget_bytes"], 256 << 20)
        self.assertTrue(0 < report["rowtide"]["memory_bytes"] <= 256 << 20)
        self.assertLessEqual(report["process"]["private_bytes"], report["process"]["peak_rss_bytes"])

    def test_a_file_that_someone_keeps_in_memory_is_not_cold(self):
        model = self.model()
        with open(model, "r+b") as file, mmap.mmap(file.fileno(), 0) as view:
            first = ctypes.c_char.from_buffer(view)
            address, length = ctypes.c_void_p(ctypes.addressof(first)), ctypes.c_size_t(len(view))
            libc = ctypes.CDLL(None, use_errno=True)
            if libc.mlock(address, length) != 0:
                self.skipTest(f"cannot lock {len(view)} bytes: {os.strerror(ctypes.get_errno())}")
            self.fail_with(FAILED, "resource", "bench", "rows", model, "--method", "mmap", "--rows", "64",
                           words=[model, "not cold", "100.0 %"])
            # A page and a half of rows that begin within a page: as many bytes are in memory as there are, no more.
            self.fail_with(FAILED, "resource", "bench", "rows", "--raw", model, "--row-bytes", 64, "--offset",
                           len(view) - 6144, "--method", "mmap", "--batch", "16", "--rows", "64", words=["100.0 %"])
            libc.munlock(address, length)
            del first
        self.assertEqual(self.run_program("bench", "rows", model, "--method", "mmap", "--rows", "64").code, DONE)

    def test_wrong_rows_are_found(self):
        process = subprocess.Popen([PROGRAM, "bench", "rows", "--synthetic", "1MiB", "--dir", self.folder, "--method",
                                    "pread1", "--batch", "64", "--rows", "64", "--repeat", "1000"],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(process.kill)
        made = self.made_file(process, 11650 * 90)
        with open(made, "r+b") as file:  # at no moment shorter than it was
            file.write(bytes(11650 * 90))
        _, messages = process.communicate(timeout=60)
        self.assertEqual(process.returncode, NOT_SO, messages)
        self.assertIn(b"pread1 delivered wrong bytes for row", messages)

    def made_file(self, process, size):
        """The nameless file of --synthetic, among those that the process has open."""
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            for path in pathlib.Path(f"/proc/{process.pid}/fd").iterdir():
                try:
                    if path.stat().st_size == size:
                        return path
                except FileNotFoundError:
                    pass  # closed meanwhile
        self.fail("no file is made")

    def test_sources_that_are_none(self):
        bare = self.file("table.bin", bytes(1000))
        for arguments, words in [([], ["--synthetic"]), ([MODEL, "--raw", bare], ["one of PATH"]),
                                 (["--raw", bare], ["--row-bytes"]), ([MODEL, "--row-bytes", 34], ["--row-bytes"]),
                                 ([MODEL, "--offset", 1], ["--offset"]), ([MODEL, "--dir", "."], ["--dir"]),
                                 (["--raw", bare, "--row-bytes", 33], ["--row-bytes", "33", "odd"]),
                                 (["--raw", bare, "--row-bytes", 0], ["--row-bytes", "'0'"]),
                                 (["--raw", bare, "--row-bytes", "many"], ["--row-bytes", "'many'"]),
                                 (["--synthetic", "much"], ["--synthetic", "much"]),
                                 (["--synthetic", "64"], ["--synthetic", "64"])]:
            with self.subTest(arguments):
                self.fail_with(USAGE, "usage", "bench", "rows", *arguments, words=words)
        self.fail_with(REFUSED, "malformed", "bench", "rows", "--raw", bare, "--row-bytes", 90, "--offset", 1000,
                       words=[bare, "--offset 1000", "past its end"])
        self.fail_with(REFUSED, "malformed", "bench", "rows", "--raw", bare, "--row-bytes", 90, "--offset", 911,
                       words=[bare, "89 bytes", "no row of 90"])
        self.fail_with(REFUSED, "not_found", "bench", "rows", "--raw", self.folder / "none", "--row-bytes", 90)
        self.fail_with(REFUSED, "not_found", "bench", "rows", self.file("plain.gguf", gguf()), words=["plain.gguf"])
        self.fail_with(FAILED, "resource", "bench", "rows", "--synthetic", "4096TiB", "--dir", self.folder,
                       words=[self.folder, "bytes are free"])
        self.fail_with(REFUSED, "not_found", "bench", "rows", "--synthetic", "1MiB", "--dir", self.folder / "none")

    def test_traces_and_states_that_are_none(self):
        tokens = self.tokens(100)
        bare = ["--raw", self.file("table.bin", bytes(90000)), "--row-bytes", 90]
        for arguments, words in [([MODEL, "--method", "mmmap"], ["'mmmap'", "did you mean 'mmap'"]),
                                 ([MODEL, "--batch", "0"], ["--batch"]), ([MODEL, "--batch", ","], ["--batch"]),
                                 ([MODEL, "--batch", ROWS + 1], ["--batch", ROWS + 1, ROWS]),
                                 ([MODEL, "--trace", "decode", "--batch", "24"], ["24", "16"]),
                                 ([MODEL, "--trace", "text"], ["--text"]),
                                 ([MODEL, "--text", tokens], ["--text"]),
                                 ([*bare, "--trace", "text", "--text", tokens], ["PATH"]),
                                 ([MODEL, "--trace", "sine"], ["sine"]), ([MODEL, "--state", "tepid"], ["'tepid'"]),
                                 ([MODEL, "--state", "mixed:1.5"], ["mixed:1.5"]), ([MODEL, "--state", "mixed"], ["mixed"]),
                                 ([MODEL, "--memory", "lots"], ["--memory", "lots"]),
                                 ([MODEL, "--memory", "16MiB", "--method", "rowtide"], ["16777216", "32.0 MiB"]),
                                 ([MODEL, "--rows", "0"], ["--rows"]), ([MODEL, "--repeat", "0"], ["--repeat"])]:
            with self.subTest(arguments):
                self.fail_with(USAGE, "usage", "bench", "rows", *arguments, words=words)
        self.fail_with(REFUSED, "malformed", "bench", "rows", MODEL, "--trace", "text", "--text",
                       self.file("cut.i32le", bytes(7)), words=["cut.i32le", "7 bytes"])
        self.fail_with(REFUSED, "malformed", "bench", "rows", MODEL, "--trace", "text", "--text",
                       self.file("negative.i32le", struct.pack("<2i", 5, -1)), words=["token 1 is -1"])
        self.fail_with(REFUSED, "unsupported", "bench", "rows", MODEL, "--trace", "text", "--text", tokens,
                       words=[tokens, "100 tokens", "512"])


if __name__ == "__main__":
    unittest.main()
