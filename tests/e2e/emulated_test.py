"""The plug-in built for Arm, in an unmodified llama-completion built for Arm, under an emulator: the text of x86-64."""
import os
import unittest

from harness import Condition, EndToEndTest, MODEL, PROMPTS, run_tool

TEXT = " then modify the configuration file for the configuration file.\n\nThe configuration file is a PostgreSQL"
TOKENS = 16


class Emulated(EndToEndTest):
    def test_the_text_is_the_native_one(self):
        Condition.launcher = os.environ["ROWTIDE_EMULATOR"].split()
        run = run_tool("completion", "-m", MODEL, "-no-cnv", "--no-display-prompt", "-n", TOKENS, "--temp", "0",
                       "--top-k", "1", "-p", PROMPTS[0], plugin=True)
        text = run.output.decode().rstrip("\n")
        self.assertGreater(len(text), 40)  # at times the program does not print the end
        self.assertTrue(TEXT.startswith(text), text)


if __name__ == "__main__":
    unittest.main()
