"""What the tests of the command line share: running the program, and GGUF files made for a test.

The program and the source tree come from the environment, which tests/cli/CMakeLists.txt sets.
"""
import json
import math
import os
import pathlib
import shutil
import struct
import subprocess
import tempfile
import unittest

PROGRAM = pathlib.Path(os.environ["ROWTIDE_PROGRAM"])
SOURCE = pathlib.Path(os.environ["ROWTIDE_SOURCE"])
MODEL = SOURCE / "models" / "tidepool.gguf"
TABLE = "per_layer_token_embd.weight"
ROWS, ROW_VALUES, ROW_BYTES = 689_536, 32, 34  # of tidepool's table: blocks of a binary16 scale and 32 signed bytes
TABLE_BYTES = ROWS * ROW_BYTES
TABLE_OFFSET = MODEL.stat().st_size - TABLE_BYTES  # the table is the last tensor of the file

DONE, USAGE, REFUSED, FAILED = 0, 2, 3, 4


class Ended:
    def __init__(self, process):
        self.code = process.returncode
        self.output = (process.stdout or b"").decode(errors="surrogateescape")
        self.messages = process.stderr.decode(errors="surrogateescape")


def table_row(row):
    """The stored bytes of a row of tidepool's table."""
    with MODEL.open("rb") as file:
        file.seek(TABLE_OFFSET + row * ROW_BYTES)
        return file.read(ROW_BYTES)


def gguf_value(value):
    """(type, bytes) of text, a whole number, a real one, or a list; whole numbers have a sign in lists only."""
    if isinstance(value, str):
        return 8, struct.pack("<Q", len(value.encode())) + value.encode()
    if isinstance(value, list):
        elements = [(5, struct.pack("<i", e)) if isinstance(e, int) else gguf_value(e) for e in value]
        return 9, struct.pack("<IQ", elements[0][0], len(elements)) + b"".join(data for _, data in elements)
    return (6, struct.pack("<f", value)) if isinstance(value, float) else (4, struct.pack("<I", value))


def gguf(metadata=None, tensors=None):
    """The bytes of a GGUF file whose tensors, by default one, are F32 zeros of the given shapes."""
    metadata = {"general.architecture": "llama"} | (metadata or {})
    tensors = tensors or {"token_embd.weight": [32, 4]}
    header = struct.pack("<4sIQQ", b"GGUF", 3, len(tensors), len(metadata))
    for key, value in metadata.items():
        kind, data = gguf_value(value)
        header += gguf_value(key)[1] + struct.pack("<I", kind) + data
    offset = 0
    for name, shape in tensors.items():
        header += gguf_value(name)[1] + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, 0, offset)
        offset += (4 * math.prod(shape) + 31) // 32 * 32
    return header + bytes(-len(header) % 32 + offset)


class ProgramTest(unittest.TestCase):
    """A test case with a scratch folder, and ways to run the program."""
    maxDiff = None

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="rowtide-cli-"))
        self.addCleanup(shutil.rmtree, self.folder)

    def file(self, name, content):
        path = self.folder / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def run_program(self, *arguments, input=b"", environment=None, output=subprocess.PIPE):
        variables = {name: value for name, value in os.environ.items() if not name.startswith("ROWTIDE_")}
        return Ended(subprocess.run([PROGRAM, *map(str, arguments)], input=input, stdout=output, stderr=subprocess.PIPE,
                                    env={**variables, **(environment or {})}))

    def succeed(self, *arguments, **options):
        ended = self.run_program(*arguments, **options)
        self.assertEqual(ended.code, DONE, ended.messages)
        return ended

    def json(self, *arguments, **options):
        """The one document that a successful run prints with --json."""
        return json.loads(self.succeed(*arguments, "--json", **options).output)

    def fail_with(self, exit_code, error_code, *arguments, words=(), **options):
        """Runs twice: the sentence on standard error names all `words`; --json gives it as an error document too."""
        plain = self.run_program(*arguments, **options)
        self.assertEqual(plain.code, exit_code, plain.messages)
        self.assertEqual(plain.output, "")
        ended = self.run_program(*arguments, "--json", **options)
        self.assertEqual(ended.code, exit_code, ended.messages)
        document = json.loads(ended.output)
        self.assertEqual(set(document), {"error"})
        self.assertEqual(document["error"]["code"], error_code)
        message = document["error"]["message"]
        for text in (message, plain.messages):
            for word in words:
                self.assertIn(str(word), text)
        self.assertIn("rowtide: " + message, ended.messages)
        return message
