"""rowtide calibrate: measuring a drive and keeping the figures."""
import os
import pathlib
import random
import signal
import subprocess
import time
import unittest

from program import PROGRAM, REFUSED, USAGE, ProgramTest

KEYS = {"device", "block", "file", "file_bytes", "method", "serial_us", "depth_curve", "sequential_bytes_per_s",
        "best_depth", "kept", "notes"}


class Calibrate(ProgramTest):
    def setUp(self):
        super().setUp()
        self.cache = self.folder / "cache"
        self.environment = {"XDG_CACHE_HOME": str(self.cache)}

    def small_file(self, mib=8):
        return self.file("model.bin", random.Random(1).randbytes(mib << 20))

    def test_a_file_is_read_and_the_figures_are_kept(self):
        path = self.small_file()
        before = sorted(os.listdir(self.folder))
        figures = self.json("calibrate", path, environment=self.environment)
        self.assertLessEqual(KEYS, set(figures))
        self.assertEqual(figures["file"], str(path))
        self.assertEqual(figures["file_bytes"], 8 << 20)
        self.assertGreaterEqual(figures["block"], 512)
        self.assertGreater(figures["serial_us"], 0)
        self.assertGreater(figures["sequential_bytes_per_s"], 0)
        depths = [point["depth"] for point in figures["depth_curve"]]
        self.assertEqual(depths, [2 ** i for i in range(len(depths))])
        rates = {point["depth"]: point["reads_per_s"] for point in figures["depth_curve"]}
        near = [depth for depth in depths if rates[depth] >= 0.95 * max(rates.values())]
        self.assertEqual(figures["best_depth"], near[0])
        if "direct" in figures["method"] and figures["kept"]:
            kept = pathlib.Path(figures["kept"])
            self.assertEqual(list(self.cache.rglob("drive-*")), [kept])
            self.assertIn(f"\nbest_depth {near[0]}\n", kept.read_text())
            self.assertLess(kept.stat().st_size, 4096)
        self.assertEqual([name for name in sorted(os.listdir(self.folder)) if name != "cache"], before)

    def test_for_people(self):
        text = self.succeed("calibrate", self.small_file(), environment=self.environment).output
        for words in ["read from", "one read", "sequential", "Reads of", "the least within 5 % of the best"]:
            self.assertIn(words, text)

    def test_a_folder_without_a_large_file_gets_a_scratch_file_that_is_gone_afterwards(self):
        folder = self.folder / "drive"
        folder.mkdir()
        figures = self.json("calibrate", folder, environment=self.environment)
        self.assertIsNone(figures["file"])
        self.assertGreaterEqual(figures["file_bytes"], 64 << 20)
        self.assertTrue(any("just written" in note for note in figures["notes"]))
        self.assertEqual(list(folder.iterdir()), [])

    def test_an_interrupt_leaves_nothing_behind(self):
        folder = self.folder / "drive"
        folder.mkdir()
        for seconds in (0.2, 1.0):
            process = subprocess.Popen([PROGRAM, "calibrate", folder], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                       env=os.environ | self.environment)
            time.sleep(seconds)
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=60)
            self.assertEqual(list(folder.iterdir()), [])
        self.assertEqual(list(self.cache.rglob("*")), [])

    @unittest.skipUnless(os.access("/dev/shm", os.W_OK), "no folder in memory")
    def test_memory_is_no_drive(self):
        path = pathlib.Path(f"/dev/shm/rowtide-calibrate-{os.getpid()}")
        self.addCleanup(path.unlink, missing_ok=True)
        path.write_bytes(random.Random(1).randbytes(4 << 20))
        figures = self.json("calibrate", path, environment=self.environment)
        self.assertEqual(figures["device"], "memory")
        self.assertIsNone(figures["kept"])
        self.assertTrue(any("no drive" in note for note in figures["notes"]))
        self.assertEqual(list(self.cache.rglob("*")), [])

    def test_what_cannot_be_measured(self):
        self.fail_with(REFUSED, "not_found", "calibrate", "/no/such/folder", words=["/no/such/folder"],
                       environment=self.environment)
        self.fail_with(USAGE, "usage", "calibrate", self.file("little", b"x" * 5000), words=["5000 bytes", "too small"],
                       environment=self.environment)

    def test_figures_that_cannot_be_kept_are_printed(self):
        blocked = self.file("blocked", b"")
        figures = self.json("calibrate", self.small_file(), environment={"XDG_CACHE_HOME": str(blocked)})
        self.assertIsNone(figures["kept"])
        self.assertTrue(figures["depth_curve"])
        self.assertTrue(any(str(blocked) in note and "could not be kept" in note for note in figures["notes"]))


if __name__ == "__main__":
    unittest.main()
