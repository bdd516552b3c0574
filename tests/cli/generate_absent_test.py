"""rowtide generate and try in a program that was built without llama.cpp."""
import unittest

from program import MODEL, ProgramTest, USAGE


class GenerateAbsent(ProgramTest):
    def test_it_says_how_to_build_with_llama(self):
        self.fail_with(USAGE, "usage", "generate", "-m", MODEL, "-p", "x", words=["without llama.cpp", "`make build`"])
        self.fail_with(USAGE, "usage", "try", MODEL, words=["without llama.cpp", "`make build`"])


if __name__ == "__main__":
    unittest.main()
