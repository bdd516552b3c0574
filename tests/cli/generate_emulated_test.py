"""rowtide generate, built for another machine and run by an emulator: the text that this machine's own build gives.

tests/cli/generate_test.py holds the native program to the same prompt and text.
"""
import unittest

from generate_test import GREEDY, PROMPT
from program import MODEL, ProgramTest

TOKENS = 16


class GenerateEmulated(ProgramTest):
    def test_the_text_is_the_native_one_and_its_rows_come_from_the_store(self):
        document = self.json("generate", "-m", MODEL, "-p", PROMPT, "-n", TOKENS)
        self.assertEqual(document["generated_tokens"], TOKENS)
        self.assertGreater(len(document["text"]), 40)
        self.assertTrue(GREEDY.startswith(document["text"]), document["text"])
        store = document["store"]
        self.assertEqual(store["rows"], 16 * (document["prompt_tokens"] + TOKENS - 1))
        self.assertTrue(0 < store["reads"] <= store["unique_rows"] <= store["rows"], store)
        self.assertLessEqual(store["hits"] + store["unique_rows"], store["rows"])


if __name__ == "__main__":
    unittest.main()
