"""Another file takes the model's name while the server runs: the rows stay those of the model that was loaded."""
import shutil
import unittest

import harness
from harness import EndToEndTest, Server


class ReplacedFile(EndToEndTest):
    def setUp(self):
        super().setUp()
        with Server(plugin=False) as stock:
            self.expected = stock.one_by_one()
        self.model = self.folder / "model.gguf"
        shutil.copyfile(harness.MODEL, self.model)
        self.other = harness.altered_copy(self.folder / "other.gguf")

    def test_after_the_first_gather(self):
        with Server(plugin=True, model=self.model) as server:
            self.assertEqual(server.one_by_one(), self.expected)
            self.other.rename(self.model)
            self.assertEqual(server.one_by_one(), self.expected)
            server.check_sign([self.model])

    def test_before_the_first_gather(self):
        with Server("--no-warmup", plugin=True, model=self.model) as server:
            self.assertIsNone(server.sign())
            self.other.rename(self.model)
            self.assertEqual(server.one_by_one(), self.expected)
            server.check_sign(["memory"])

    def test_the_other_file_gives_other_output(self):
        with Server(plugin=True, model=self.other) as server:
            self.assertNotEqual(server.one_by_one(), self.expected)


if __name__ == "__main__":
    unittest.main()
