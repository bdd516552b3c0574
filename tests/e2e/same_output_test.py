"""same_output_test.py CONDITION: with the plug-in, unmodified llama.cpp gives the same output as without, and so does
`rowtide generate`, under one of the circumstances of conditions.py."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import unittest

import conditions
import harness
from harness import EndToEndTest, Server, complete, run_tool


class SameOutput(EndToEndTest):
    model = harness.MODEL
    method_words = []

    def check_method(self, sign):
        for word in self.method_words:
            self.assertIn(word, sign["tables"][0]["method"])

    def test_completion_gives_the_same_bytes(self):
        stock = complete(self.model, plugin=False)
        self.assertGreater(len(stock), 100)
        self.assertEqual(complete(self.model, plugin=True, tables=[self.model]), stock)

    def test_other_rows_give_other_output(self):
        other = harness.altered_copy(self.folder / "altered.gguf")
        self.assertNotEqual(complete(other, plugin=True, tables=[other]), complete(self.model, plugin=False))

    def test_perplexity_gives_the_same_figure_and_logits(self):
        text = self.folder / "text"
        text.write_bytes(harness.TEXT.read_bytes()[:3000])

        def measure(plugin):
            logits = self.folder / f"logits-{plugin}"
            for _ in range(3):  # now and then the program loses the last lines of its log
                finished = run_tool("perplexity", "-m", self.model, "-f", text, "-c", "256", "--save-all-logits", logits,
                                    plugin=plugin, tables=[self.model])
                figures = [line.split("PPL = ")[1] for line in finished.log.splitlines() if "PPL = " in line]
                if figures:
                    break
            if plugin:
                self.check_method(finished.sign)
            return figures, logits.read_bytes()

        figures, logits = measure(plugin=False)
        self.assertEqual(len(figures), 1)
        self.assertNotIn("nan", figures[0])
        self.assertGreater(len(logits), 1_000_000)
        self.assertEqual(measure(plugin=True), (figures, logits))

    def test_server_gives_the_same_tokens_and_log_probabilities(self):
        with Server(plugin=False, model=self.model) as stock:
            expected = stock.one_by_one()
            self.assertEqual(stock.at_once(), [tokens for tokens, _ in expected])
        with Server(plugin=True, model=self.model) as server:
            self.assertEqual(server.one_by_one(), expected)
            self.assertEqual(server.at_once(), [tokens for tokens, _ in expected])
            server.check_sign([self.model])
            self.check_method(server.sign())

    def generate(self, *arguments):
        command, environment = harness.command_and_environment(
            harness.BUILD / "rowtide",
            ["generate", "-m", self.model, "-p", harness.PROMPTS[1], "-n", "32", "--threads", "1", "--json",
             *arguments],
            plugin=False)
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_generate_gives_the_same_tokens_and_logits(self):
        stock, served = self.generate("--no-store"), self.generate()
        self.assertEqual(len(stock["tokens"]), 32)
        for key in ["tokens", "text", "logits_sha256", "prompt_tokens", "generated_tokens"]:
            self.assertEqual(served[key], stock[key], key)
        self.assertGreater(served["store"]["reads"], 0)
        self.assertEqual(served["store"]["rows"] % 16, 0)
        self.assertGreaterEqual(served["store"]["rows"], 16 * (served["prompt_tokens"] + 31))


def main():
    name = sys.argv.pop(1)
    harness.Condition.launcher, harness.Condition.environment, SameOutput.method_words = conditions.CONDITIONS[name]
    if name == "unprivileged" and os.geteuid() == 0:
        sys.argv.insert(1, name)
        conditions.run_unprivileged()
    if name == "tmpfs":
        SameOutput.model = conditions.on_tmpfs(harness.MODEL)
        unittest.addModuleCleanup(shutil.rmtree, pathlib.Path(SameOutput.model).parent)
    unittest.main()


if __name__ == "__main__":
    main()
