"""However llama.cpp loads the model, the output is stock's. A table that lies in no file is gathered in memory."""
import unittest

from harness import EndToEndTest, MODEL, complete


class LoadModes(EndToEndTest):
    def check(self, *arguments, source=MODEL):
        stock = complete(MODEL, *arguments, plugin=False)
        self.assertEqual(complete(MODEL, *arguments, plugin=True, tables=[source]), stock)
        self.assertEqual(complete(MODEL, plugin=False), stock)

    def test_mapped_and_not_lazy(self):
        self.check("-lzm", "off")

    def test_read_into_memory(self):
        self.check("-lzm", "off", "-lm", "none", source="memory")

    def test_lazy_and_the_rest_read_into_memory(self):
        self.check("-lm", "none")

    def test_locked(self):
        self.check("-lm", "mmap+mlock")

    def test_locked_and_not_lazy(self):
        self.check("-lzm", "off", "-lm", "mmap+mlock")

    def test_direct(self):
        self.check("-lm", "dio")


if __name__ == "__main__":
    unittest.main()
