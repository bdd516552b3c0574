"""What the store takes inside the engine: anonymous and shared memory exceed those of a run without it by the budget and
64 MiB at most. The table is much larger than the budgets; the measure sees a table that is resident."""
import json
import subprocess
import unittest

import harness
from harness import EndToEndTest

TABLE_ROWS, MIB = 3_000_000, 1 << 20  # the table: 258 MiB
BESIDE = 64 * MIB


class MemoryBudget(EndToEndTest):
    def setUp(self):
        super().setUp()
        self.model = self.folder / "model.gguf"
        subprocess.run([harness.BUILD / "make_table", self.model, "--rows", str(TABLE_ROWS)], check=True,
                       stderr=subprocess.DEVNULL)
        self.prompt = self.folder / "prompt"
        self.prompt.write_bytes(harness.TEXT.read_bytes()[:2500])
        self.without = self.generate("--no-store")

    def generate(self, *arguments):
        command, environment = harness.command_and_environment(
            harness.BUILD / "rowtide", ["generate", "-m", self.model, "-f", self.prompt, "-n", "4", "--json", *arguments],
            plugin=False)
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def exceeded_by(self, document):
        self.assertEqual(document["logits_sha256"], self.without["logits_sha256"])
        self.assertGreater(self.without["private_bytes"], 0)
        return document["private_bytes"] - self.without["private_bytes"]

    def test_the_cache_and_what_comes_with_it(self):
        for budget in [32 * MIB, 128 * MIB]:
            document = self.generate("--memory", str(budget))
            self.assertEqual(document["store"]["budget_bytes"], budget)
            self.assertLessEqual(document["store"]["memory_bytes"], budget)
            self.assertLessEqual(self.exceeded_by(document), budget + BESIDE)

    def test_the_measure_sees_a_resident_table(self):
        document = self.generate("--mode", "resident")
        exceeded = self.exceeded_by(document)
        self.assertGreater(document["store"]["resident_bytes"], BESIDE)
        self.assertGreater(exceeded, 0.9 * document["store"]["resident_bytes"])
        self.assertLessEqual(exceeded, document["store"]["budget_bytes"] + BESIDE)


if __name__ == "__main__":
    unittest.main()
