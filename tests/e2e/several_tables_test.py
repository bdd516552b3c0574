"""A target and a draft model, each with a table of its own, in one process."""
import unittest

import harness
from harness import EndToEndTest, MODEL, Server


class SeveralTables(EndToEndTest):
    def test_a_draft_model_with_its_own_table(self):
        draft = harness.altered_copy(self.folder / "draft.gguf")  # drafts other tokens, so that some are rejected
        speculative = ["--spec-type", "draft-simple", "-md", draft, "--spec-draft-n-max", "4", "-td", "1"]
        with Server(plugin=False) as plain:
            tokens = [tokens for tokens, _ in plain.one_by_one()]
        with Server(*speculative, plugin=False) as stock:
            expected = stock.one_by_one()
        self.assertEqual([tokens for tokens, _ in expected], tokens)
        with Server(*speculative, plugin=True) as server:
            self.assertEqual(server.one_by_one(), expected)
            self.assertEqual(server.at_once(), tokens)
            server.check_sign([MODEL, draft])


if __name__ == "__main__":
    unittest.main()
