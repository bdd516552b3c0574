"""The program that is compared, the random token sequences, and the account of what agreed."""
import json
import os
import pathlib
import random
import subprocess
import traceback

import numpy

SOURCE = pathlib.Path(__file__).resolve().parents[3]
PROGRAM = pathlib.Path(os.environ.get("ROWTIDE_PROGRAM", SOURCE / "build" / "rowtide"))
IDS_A_CALL = 10_000  # an argument has at most 128 KiB


class Difference(Exception):
    """What Rowtide and a loader do not agree on."""


def rowtide(*arguments, text=""):
    """The document that `rowtide ARGUMENTS --json` prints."""
    command = [str(PROGRAM), *map(str, arguments), "--json"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Difference(f"`{' '.join(command)[:150]} ...` ended with {done.returncode}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def listed(ids):
    return ",".join(map(str, ids))


def address(source, tokens, history=None):
    """Row ids [table, token, row] and the history to carry on."""
    arguments = ["address", *source, "--tokens-file", "-"]
    if history is not None:
        arguments.append("--history=" + listed(history))
    document = rowtide(*arguments, text="\n".join(map(str, tokens)))
    return numpy.array([table["rows"] for table in document["tables"]], dtype=numpy.int64), document["history_after"]


def rows(path, ids, kind, table=None):
    """Bits of the values of rows [id, value]: uint16 of `kind` bf16, uint32 of f32."""
    digits, read = {"bf16": (4, ">u2"), "f32": (8, ">u4")}[kind], []
    for start in range(0, len(ids), IDS_A_CALL):
        asked = ids[start:start + IDS_A_CALL]
        of_table = ["--table", table] if table else []
        document = rowtide("rows", path, "--ids", listed(asked), "--format", kind, *of_table)
        assert [row["id"] for row in document["rows"]] == list(asked)
        read += [numpy.frombuffer(bytes.fromhex(row["values"]), dtype=digits[1]) for row in document["rows"]]
    return numpy.stack(read).astype(digits[1][1:])


def sequence(generator, length, vocabulary, special=(), beyond=()):
    """Random token ids: mostly of the vocabulary and often the same, one in ten special, one in ten from beyond."""
    few = [generator.randrange(vocabulary) for _ in range(5)]
    kinds = [lambda: generator.randrange(vocabulary)] * 5 + [lambda: generator.choice(few)] * 3
    kinds += [lambda: generator.choice(special)] if special else []
    kinds += [lambda: generator.choice(beyond)] if beyond else []
    return [generator.choice(kinds)() for _ in range(length)]


def cut(generator, tokens, longest=40):
    """`tokens` in chunks, one-token chunks among them."""
    chunks, at = [], 0
    while at < len(tokens):
        length = generator.choice([1, 1, 2, 3, generator.randint(1, longest)])
        chunks.append(tokens[at:at + length])
        at += length
    return chunks


def random_of(name):
    """A generator that is the same in every run."""
    return random.Random(f"rowtide {name}")


class Account:
    """What was compared, line by line, and each difference."""

    def __init__(self):
        self.lines, self.differences = [], []

    def same(self, loader, what, expected, got, unit):
        """Compares the loader's array with Rowtide's. Adds up over calls of the same loader, subject and unit."""
        expected, got = numpy.asarray(expected), numpy.asarray(got)
        line = next((known for known in self.lines if known[:3] == [loader, what, unit]), None)
        if line is None:
            line = [loader, what, unit, 0, 0]
            self.lines.append(line)
        line[3] += expected.size if unit == "ids" else len(expected)
        if expected.shape != got.shape:
            line[4] += 1
            self.differences.append(f"{loader}, {what}: shape {expected.shape}, Rowtide {got.shape}")
        elif (unequal := numpy.argwhere(expected != got)).size:
            line[4] += len(unequal)
            where = tuple(unequal[0])
            self.differences.append(
                f"{loader}, {what}: {len(unequal)} of {expected.size} {unit if unit == 'ids' else 'values'} differ, first "
                f"at {list(map(int, where))}: {expected[where]:#x}, Rowtide {got[where]:#x}")

    def same_sequence(self, loader, what, source, tokens, expected):
        """Row ids of a whole sequence: Rowtide's in one piece against the loader's [table, token, row]."""
        self.same(loader, what, expected, address(source, tokens)[0], "ids")

    def same_chunks(self, loader, what, source, chunks, expected):
        """The same in chunks: Rowtide's carried on from each chunk to the next, and the loader's of each chunk."""
        history = None
        for chunk, wanted in zip(chunks, expected, strict=True):
            got, history = address(source, chunk, history)
            self.same(loader, what, wanted, got, "ids")

    def attempt(self, part, function, *arguments):
        """function(account, arguments). What stops it is a difference; what comes after it still has its say."""
        try:
            function(self, *arguments)
        except Exception as error:
            if not isinstance(error, Difference):
                traceback.print_exc()
            self.differences.append(f"{part}: {type(error).__name__}: {error}")

    def report(self):
        widths = [max(len(str(line[i])) for line in self.lines) for i in (0, 1)] if self.lines else []
        for loader, what, unit, count, unequal in self.lines:
            verdict = "equal" if unequal == 0 else f"{unequal:,} DIFFER"
            print(f"  {loader:{widths[0]}}  {what:{widths[1]}}  {count:>11,} {unit:4}  {verdict}")
        for difference in self.differences:
            print("  " + difference)
        totals = {unit: sum(line[3] for line in self.lines if line[2] == unit) for unit in ("ids", "rows")}
        print(f"{totals['ids']:,} row ids and {totals['rows']:,} rows compared, {len(self.differences)} differences")
