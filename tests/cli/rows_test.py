"""rowtide rows: rows of tidepool's table against the file's bytes."""
import random
import struct
import unittest

from program import MODEL, ProgramTest, REFUSED, ROWS, TABLE, USAGE, gguf, table_row

IDS = [0, ROWS - 1, 7, 7, 8, 120, 121, *random.Random(5).sample(range(ROWS), 200)]


def values(row):
    """A row of Q8_0 decoded: scale times code, in binary32."""
    scale, *codes = struct.unpack("<e32b", table_row(row))
    return [scale * code for code in codes]  # exact in binary64 and, 11 + 8 bits, in binary32


def f32_bits(value):
    return struct.unpack("<I", struct.pack("<f", value))[0]


def bf16_bits(value):
    bits = f32_bits(value)
    return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16  # to nearest, ties to even


class Rows(ProgramTest):
    def rows(self, *arguments):
        document = self.json("rows", MODEL, "--ids", ",".join(map(str, IDS)), *arguments)
        self.assertEqual((document["table"], document["row_format"]), (TABLE, "q8_0"))
        self.assertEqual([row["id"] for row in document["rows"]], IDS)
        return document["rows"]

    def test_raw(self):
        for arguments in [[], ["--format", "raw"], ["--table", TABLE]]:
            for row in self.rows(*arguments):
                self.assertEqual(row, {"id": row["id"], "raw": table_row(row["id"]).hex()})

    def test_f32(self):
        for row in self.rows("--format", "f32"):
            self.assertEqual(row["values"], "".join(f"{f32_bits(value):08x}" for value in values(row["id"])))

    def test_bf16(self):
        for row in self.rows("--format", "bf16"):
            self.assertEqual(row["values"], "".join(f"{bf16_bits(value):04x}" for value in values(row["id"])))

    def test_for_people(self):
        self.assertEqual(self.succeed("rows", MODEL, "--ids", "3 4").output,
                         f"3: {table_row(3).hex()}\n4: {table_row(4).hex()}\n")
        for form, bits in [("f32", f32_bits), ("bf16", bf16_bits)]:
            name, numbers = self.succeed("rows", MODEL, "--ids", "3", "--format", form).output.split(":")
            self.assertEqual((name, [bits(float(number)) for number in numbers.split()]),
                             ("3", [bits(value) for value in values(3)]))

    def test_ids_out_of_range(self):
        for row in [ROWS, -1, 2**63 - 1]:
            self.fail_with(REFUSED, "out_of_range", "rows", MODEL, f"--ids=5,{row}", words=[MODEL, TABLE, row, ROWS - 1])

    def test_lists_that_are_none(self):
        self.fail_with(USAGE, "usage", "rows", MODEL, "--ids", " , ", words=["--ids: the list is empty"])
        self.fail_with(USAGE, "usage", "rows", MODEL, "--ids", "1;2", words=["--ids: '1;2'"])
        self.fail_with(USAGE, "usage", "rows", MODEL, "--ids", "1", "--format", "f64", words=["--format", "f64"])

    def test_tables_that_are_none(self):
        self.fail_with(REFUSED, "not_found", "rows", MODEL, "--ids", "1", "--table", "other", words=["'other'", TABLE])
        plain = self.file("plain.gguf", gguf())
        self.fail_with(REFUSED, "not_found", "rows", plain, "--ids", "1", words=[plain, "no conditional-memory table"])
        self.fail_with(REFUSED, "malformed", "rows", self.file("cut.gguf", MODEL.read_bytes()[:-1]), "--ids", "1",
                       words=["cut.gguf", TABLE])


if __name__ == "__main__":
    unittest.main()
