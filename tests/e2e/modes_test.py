"""ROWTIDE_MODE and ROWTIDE_MEMORY: the output is stock's in every mode, rows that are kept are not read again, and a
value that cannot be used is said at start."""
import pathlib
import unittest

import harness
from harness import EndToEndTest, MODEL, PROMPTS, Server, TABLE, complete, run_tool

MIB = 1 << 20


def bytes_read(pid):
    fields = dict(line.split(": ") for line in pathlib.Path(f"/proc/{pid}/io").read_text().splitlines())
    return int(fields["read_bytes"])


class Modes(EndToEndTest):
    def with_environment(self, **environment):
        harness.Condition.environment = environment
        self.addCleanup(setattr, harness.Condition, "environment", {})

    def test_the_output_is_the_same_in_every_mode(self):
        stock = complete(MODEL, plugin=False)
        for mode, memory in [("disk", None), ("cache", "32MiB"), ("resident", "64MiB"), ("auto", None)]:
            with self.subTest(mode):
                self.with_environment(ROWTIDE_MODE=mode, **({"ROWTIDE_MEMORY": memory} if memory else {}))
                self.assertEqual(complete(MODEL, plugin=True), stock)

    def serve_twice(self, mode):
        """Bytes that a server reads for a prompt, and for the same prompt again."""
        self.with_environment(ROWTIDE_MODE=mode)
        with Server(plugin=True) as server:
            reads, answers = [bytes_read(server.process.pid)], []
            for _ in range(2):
                answers.append(server.tokens_and_log_probabilities(PROMPTS[1]))
                reads.append(bytes_read(server.process.pid))
            self.assertEqual(answers[0], answers[1])
            line = next(line for line in server.log().splitlines() if "rowtide: serving" in line)
            self.assertIn(f"; mode {mode}, budget ", line)
        return reads[1] - reads[0], reads[2] - reads[1]

    def test_a_prompt_asked_again_is_not_read_again(self):
        first, again = self.serve_twice("cache")
        self.assertGreater(first, 100 * 4096)
        self.assertLess(again, first // 20)

    def test_without_a_cache_it_is_read_again(self):
        first, again = self.serve_twice("disk")
        self.assertGreater(again, first // 2)

    def test_values_that_cannot_be_used(self):
        for environment, words in [({"ROWTIDE_MODE": "fast"}, ["ROWTIDE_MODE", "fast"]),
                                   ({"ROWTIDE_MEMORY": "much"}, ["ROWTIDE_MEMORY", "much"]),
                                   ({"ROWTIDE_MEMORY": "1MiB"}, ["1048576 bytes", "32.0 MiB or more"]),
                                   ({"ROWTIDE_MEMORY": "1GiB", "ROWTIDE_MODE": "disk"}, ["disk", "1.000 GiB"]),
                                   ({"ROWTIDE_METRICS": "127.0.0.1:1"}, ["ROWTIDE_METRICS"])]:
            with self.subTest(environment):
                self.with_environment(**environment)
                with Server(plugin=True) as server:
                    self.assertIsNone(server.sign())
                    refusal = next(line for line in server.log().splitlines() if "rowtide: not serving: " in line)
                    for word in words:
                        self.assertIn(word, refusal)
                    self.assertEqual(server.request(PROMPTS[0])[0], 200)  # llama.cpp goes on by itself

    def test_a_budget_that_the_table_does_not_fit(self):
        self.with_environment(ROWTIDE_MODE="resident", ROWTIDE_MEMORY="40MiB")
        with Server(plugin=True) as server:
            status, answer = server.request(PROMPTS[0])
            self.assertEqual(status, 500, answer)
            self.assertIn(f"rowtide: table {TABLE}: to be resident it needs", server.log())


if __name__ == "__main__":
    unittest.main()
