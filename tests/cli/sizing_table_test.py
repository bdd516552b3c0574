"""The tables of docs/sizing.md are what the program says now."""
import subprocess
import sys
import unittest

from program import PROGRAM, SOURCE

SCRIPT = SOURCE / "scripts" / "sizing_table.py"


class SizingTable(unittest.TestCase):
    def test_is_up_to_date(self):
        done = subprocess.run([sys.executable, "-B", SCRIPT, PROGRAM, "--check"], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()
