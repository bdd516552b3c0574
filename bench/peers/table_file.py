"""The file of rows that everybody reads, its rows by rule, and its state in the page cache."""
import ctypes
import mmap
import os

import numpy

BLOCK = 4096
GAMMA = numpy.uint64(0x9E3779B97F4A7C15)


def splitmix64(state):
    z = state + GAMMA
    z = (z ^ (z >> numpy.uint64(30))) * numpy.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> numpy.uint64(27))) * numpy.uint64(0x94D049BB133111EB)
    return z ^ (z >> numpy.uint64(31))


def rows_by_rule(ids, row_bytes):
    """Row i holds the little-endian words splitmix64(words * i + k), cut to its length."""
    words = (row_bytes + 7) // 8
    states = ids.astype(numpy.uint64)[:, None] * numpy.uint64(words) + numpy.arange(words, dtype=numpy.uint64)
    return splitmix64(states).view(numpy.uint8).reshape(len(ids), 8 * words)[:, :row_bytes]


class TableFile:
    """A file of rows named shard_000.bin in a folder, as one of the packages wants it."""

    def __init__(self, folder, size, row_bytes, progress):
        self.row_bytes = row_bytes
        self.rows = size // row_bytes
        self.folder = folder
        self.path = os.path.join(folder, "shard_000.bin")
        free = os.statvfs(folder).f_bavail * os.statvfs(folder).f_frsize
        if size > free:
            raise SystemExit(f"{folder}: has {free} bytes free, and the file takes {size}: give another --dir or --size")
        step = 1 << 18
        with open(self.path, "wb") as file:
            for begin in range(0, self.rows, step):
                ids = numpy.arange(begin, min(begin + step, self.rows))
                file.write(rows_by_rule(ids, row_bytes).tobytes())
                progress(f"making {self.path}", min(begin + step, self.rows) / self.rows)
            file.flush()
            os.fdatasync(file.fileno())
        self.blocks = self.rows * row_bytes // BLOCK

    def check(self, who, ids, rows):
        """All rows against the rule."""
        wrong = (rows_by_rule(ids, self.row_bytes) != rows.reshape(len(ids), self.row_bytes)).any(axis=1)
        if wrong.any():
            raise SystemExit(f"{who}: row {ids[wrong.argmax()]} is wrong")

    def resident_share(self):
        libc = ctypes.CDLL(None, use_errno=True)
        with open(self.path, "r+b") as file, mmap.mmap(file.fileno(), 0) as view:
            pages = (ctypes.c_ubyte * ((len(view) + BLOCK - 1) // BLOCK))()
            first = ctypes.c_char.from_buffer(view)
            failed = libc.mincore(ctypes.c_void_p(ctypes.addressof(first)), ctypes.c_size_t(len(view)), pages)
            del first
        if failed:
            raise SystemExit(f"{self.path}: mincore: {os.strerror(ctypes.get_errno())}")
        return float((numpy.frombuffer(pages, dtype=numpy.uint8) & 1).mean())

    def make_cold(self):
        """Evicts the file; nobody may map it. Gives back the share that is left, under 1 %."""
        with open(self.path, "rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        share = self.resident_share()
        if share >= 0.01:
            raise SystemExit(f"{self.path}: {share:.1%} of it stays in memory, so it is not cold")
        return share


class FreshRows:
    """Rows of blocks that nobody has read: each block is given out once, with one row that lies whole within it."""

    def __init__(self, table, seed):
        self.table = table
        self.random = numpy.random.default_rng(seed)
        self.order = self.random.permutation(table.blocks)
        self.given = 0

    def take(self, count):
        blocks = self.order[self.given:self.given + count]
        if len(blocks) < count:
            raise SystemExit("the file has too few blocks for a run in which none is read twice: give a larger --size")
        self.given += count
        first = -(-blocks * BLOCK // self.table.row_bytes)  # rounded up
        last = ((blocks + 1) * BLOCK - self.table.row_bytes) // self.table.row_bytes
        return first + self.random.integers(0, numpy.maximum(last - first + 1, 1))
