"""Another file takes the model's name while the server runs: the rows stay those of the model that was loaded."""
import pathlib
import shutil
import signal
import time
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

    def stop_before_the_first_gather(self):
        """A server that has mapped the model but asked for no row yet, stopped."""
        for _ in range(20):
            server = Server(plugin=True, model=self.model)
            maps = pathlib.Path(f"/proc/{server.process.pid}/maps")
            while server.process.poll() is None and str(self.model) not in maps.read_text():
                time.sleep(0.001)
            server.process.send_signal(signal.SIGSTOP)
            sign = server.sign()
            if sign is not None and sign["tables"] == []:
                return server
            server.process.kill()
            server.process.wait()
        raise AssertionError("no server could be stopped between mapping the model and its first gather")

    def test_before_the_first_gather(self):
        server = self.stop_before_the_first_gather()
        self.other.rename(self.model)
        server.process.send_signal(signal.SIGCONT)
        with server:
            self.assertEqual(server.one_by_one(), self.expected)
            server.check_sign(["memory"])

    def test_the_other_file_gives_other_output(self):
        with Server(plugin=True, model=self.other) as server:
            self.assertNotEqual(server.one_by_one(), self.expected)


if __name__ == "__main__":
    unittest.main()
