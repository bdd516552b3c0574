"""One read of the table fails: that request is an error, the server lives on and later answers are right."""
import unittest

import conditions
import harness
from harness import EndToEndTest, PROMPTS, Server


class IoError(EndToEndTest):
    def test_a_failed_read_fails_one_request(self):
        with Server(plugin=False) as stock:
            expected = stock.one_by_one()

        trigger = self.folder / "fail-the-next-read"
        harness.Condition.launcher = [conditions.REFUSE_IO_URING, "EPERM"]
        self.addCleanup(setattr, harness.Condition, "launcher", [])
        bad_disk = {"LD_PRELOAD": conditions.BAD_DISK, "BAD_DISK": "once", "BAD_DISK_TRIGGER": str(trigger),
                    "BAD_DISK_FROM": str(harness.TABLE_OFFSET)}
        with Server(plugin=True, environment=bad_disk) as server:
            for slot, prompt in enumerate(PROMPTS[:2]):  # each asks for rows that no request has brought yet
                trigger.touch()
                status, answer = server.request(prompt, slot)
                self.assertFalse(trigger.exists(), "no read of the table came by")
                self.assertEqual(status, 500, answer)
                self.assertEqual(server.tokens_and_log_probabilities(prompt, slot), expected[slot])
            self.assertEqual(server.one_by_one(), expected)
            self.assertIsNone(server.process.poll())
            server.check_sign()
            self.assertIn(harness.MODEL.name, self.line_of_the_error(server.log()))

    def line_of_the_error(self, log):
        lines = [line for line in log.splitlines() if "rowtide" in line and "errno 5" in line]
        self.assertEqual(len(lines), 2, log)
        return lines[0]


if __name__ == "__main__":
    unittest.main()
