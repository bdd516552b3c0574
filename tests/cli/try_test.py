"""rowtide try: stock against Rowtide on one model, measured and compared."""
import os
import shutil
import unittest

from program import DONE, MODEL, PROGRAM, ProgramTest, REFUSED, FAILED, SOURCE, TABLE_BYTES, USAGE, gguf

RUN_KEYS = {"method", "state", "gather_seconds", "prompt_tok_s", "decode_tok_s", "memory_bytes", "reads", "rows",
            "missed_rows", "store_bytes", "page_cache_bytes", "private_bytes", "first_row_seconds",
            "resident_share_before", "logits_sha256"}
QUICK = ["--tokens", "160", "-n", "6", "--repeat", "2"]


class Try(ProgramTest):
    def setUp(self):
        super().setUp()
        self.model = self.folder / "model.gguf"  # others may map the repository's while this is made cold
        shutil.copyfile(MODEL, self.model)

    def runs(self, document, method, state):
        runs = [run for run in document["runs"] if (run["method"], run["state"]) == (method, state)]
        self.assertEqual(len(runs), document["repeat"])
        return runs

    def test_runs_of_both_methods_in_both_states(self):
        document = self.json("try", self.model, *QUICK, "--memory", "64MiB")
        self.assertTrue(document["same_output"])
        self.assertEqual((document["prompt_tokens"], document["repeat"], len(document["runs"])), (160, 2, 8))
        for run in document["runs"]:
            self.assertEqual(set(run), RUN_KEYS)
            self.assertEqual(run["rows"], 16 * 160)
            for key in ["gather_seconds", "prompt_tok_s", "decode_tok_s", "private_bytes"]:
                self.assertGreater(run[key], 0)
            self.assertLess(run["resident_share_before"], 0.01)
            self.assertEqual(run["memory_bytes"], run["store_bytes"] + run["page_cache_bytes"])
            self.assertEqual(run["logits_sha256"], document["runs"][0]["logits_sha256"])
        for run in self.runs(document, "stock", "cold"):
            self.assertGreater(run["reads"], 0)
            self.assertGreater(run["page_cache_bytes"], TABLE_BYTES // 4)
            self.assertEqual(run["store_bytes"], 0)
        for run in self.runs(document, "rowtide", "cold"):
            self.assertGreater(run["reads"], 1000)
            self.assertGreater(run["missed_rows"], 1000)
            self.assertLess(run["page_cache_bytes"], TABLE_BYTES // 4)
            self.assertTrue(0 < run["store_bytes"] <= 64 << 20)
        for method in ["stock", "rowtide"]:
            for run in self.runs(document, method, "warm"):
                self.assertEqual((run["reads"], run["missed_rows"]), (0, 0))
        self.assertTrue(document["verdict"].startswith("Same output; "), document["verdict"])
        self.check_ratios(document)

    def check_ratios(self, document):
        for state in ["cold", "warm"]:
            for figure in ["gather_seconds", "prompt_tok_s", "decode_tok_s"]:
                stock, rowtide = ([run[figure] for run in self.runs(document, method, state)]
                                  for method in ["stock", "rowtide"])
                ratio = document["ratios"][state][figure]
                self.assertAlmostEqual(ratio["rowtide_over_stock"], max(rowtide) / max(stock))  # of two, the upper median
                self.assertEqual(ratio["overlap"], min(stock) <= max(rowtide) and min(rowtide) <= max(stock))
        overlap = document["ratios"]["cold"]["gather_seconds"]["overlap"]
        self.assertEqual(overlap, "cold within the spread" in document["verdict"], document["verdict"])

    def test_a_mode_that_keeps_nothing_reads_again_and_says_so(self):
        document = self.json("try", self.model, *QUICK, environment={"ROWTIDE_MODE": "disk"})
        for run in self.runs(document, "rowtide", "warm"):
            self.assertEqual(run["missed_rows"], run["rows"])
            self.assertGreater(run["reads"], 1000)
        self.assertIn("100 % of the warm rows did not fit its memory and were read again", document["verdict"])

    def test_a_table_for_people_on_standard_output(self):
        ended = self.succeed("try", self.model, *QUICK)
        lines = ended.output.splitlines()
        self.assertIn("160 tokens of prompt", lines[0])
        self.assertEqual([line.split()[:2] for line in lines[2:7]],
                         [["method", "state"], ["stock", "cold"], ["rowtide", "cold"], ["stock", "warm"], ["rowtide", "warm"]])
        self.assertTrue(lines[-1].startswith("Same output; "))
        self.assertNotIn("serving", ended.messages)

    def test_as_many_tokens_as_are_asked_for(self):
        text = self.file("prompt", (SOURCE / "models" / "heldout.txt").read_bytes()[:800])
        for arguments, prompt, generated in [(["--tokens", 130, "-n", 7], 130, 7), (["--tokens", 120], 120, None),
                                             (["-n", 5], None, 5)]:
            document = self.json("try", self.model, "--prompt-file", text, "--repeat", 2, "--ubatch", 50, *arguments)
            self.assertEqual(document["ubatch"], 50)
            self.assertEqual(document["prompt_tokens"], prompt or document["prompt_tokens"])
            self.assertEqual(document["generated_tokens"], generated or document["generated_tokens"])
            self.assertGreaterEqual(document["prompt_tokens"], 64)  # the least that is planned
            self.assertGreaterEqual(document["generated_tokens"], 4)

    def test_a_prompt_of_ones_own(self):
        text = (SOURCE / "models" / "heldout.txt").read_text()[:400]
        from_file = self.json("try", self.model, "--prompt-file", self.file("prompt", text), *QUICK)
        piped = self.json("try", self.model, "--prompt-file", "-", *QUICK, input=text.encode())
        self.assertLess(from_file["prompt_tokens"], 160)
        self.assertEqual(from_file["prompt_tokens"], piped["prompt_tokens"])
        self.assertEqual(from_file["runs"][0]["logits_sha256"], piped["runs"][0]["logits_sha256"])

    def test_what_is_refused(self):
        absent = self.folder / "absent"
        self.fail_with(REFUSED, "not_found", "try", absent, words=[absent])
        plain = self.file("plain.gguf", gguf())
        self.fail_with(REFUSED, "unsupported", "try", plain, words=[plain, "nothing to compare"])
        self.fail_with(REFUSED, "not_found", "try", self.model, "--prompt-file", absent, words=[absent])
        self.fail_with(USAGE, "usage", "try", self.model, "--prompt-file", self.file("empty", ""), words=["empty"])
        self.fail_with(USAGE, "usage", "try", self.model, "--repeat", "1", words=["--repeat"])
        self.fail_with(USAGE, "usage", "try", self.model, "--tokens", "-1", words=["--tokens"])
        self.fail_with(USAGE, "usage", "try", self.model, "--memory", "1M", words=["32.0 MiB or more"])
        self.fail_with(USAGE, "usage", "try", words=["MODEL"])

    def test_a_table_that_cannot_be_made_cold(self):
        model = shutil.copy(MODEL, "/dev/shm/rowtide-try-test.gguf")
        self.addCleanup(os.remove, model)
        self.fail_with(FAILED, "resource", "try", model, *QUICK, words=[model, "not cold"])


if __name__ == "__main__":
    unittest.main()
