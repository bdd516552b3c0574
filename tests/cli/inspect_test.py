"""rowtide inspect: a checkpoint with a table, one without, and files that are no checkpoint."""
import os
import unittest

from program import MODEL, ProgramTest, REFUSED, ROWS, ROW_BYTES, ROW_VALUES, TABLE, TABLE_BYTES, TABLE_OFFSET, gguf


class Inspect(ProgramTest):
    def test_a_model_with_a_table(self):
        size = MODEL.stat().st_size
        document = self.json("inspect", MODEL)
        identity = document["tables"][0].pop("identity")
        self.assertRegex(identity, "^[0-9a-f]{32}$")
        self.assertEqual(document, {
            "path": str(MODEL), "format": "gguf", "family": "qwen_ple", "model_type": "qwen4exp",
            "files": [{"path": str(MODEL), "bytes": size}],
            "tables": [{
                "name": TABLE, "layer": 1, "rows": ROWS, "row_bytes": ROW_BYTES, "row_format": "q8_0",
                "row_values": ROW_VALUES, "bytes": TABLE_BYTES, "orders": [2, 3], "heads_per_order": 8,
                "rows_per_token": 16, "bytes_per_token": 16 * ROW_BYTES,
                "extents": [{"component": "values", "row_bytes": ROW_BYTES, "path": str(MODEL), "offset": TABLE_OFFSET,
                             "first_row": 0, "rows": ROWS}]}],
            "bytes_total": size, "bytes_table": TABLE_BYTES, "bytes_rest": size - TABLE_BYTES})

    def test_the_identity_is_that_of_the_rows(self):
        copy = self.file("copy.gguf", MODEL.read_bytes())
        other = bytearray(MODEL.read_bytes())
        other[TABLE_OFFSET:] = other[TABLE_OFFSET:][::-1]
        identities = [self.json("inspect", path)["tables"][0]["identity"]
                      for path in [MODEL, copy, self.file("other.gguf", bytes(other))]]
        self.assertEqual(identities[0], identities[1])
        self.assertNotEqual(identities[0], identities[2])

    def test_for_people(self):
        text = self.succeed("inspect", MODEL).output
        for words in [str(MODEL), "qwen4exp", TABLE, "689,536, each 32 q8_0 values in 34 bytes",
                      "22.4 MiB (23,444,224 bytes), 60.2 % of the checkpoint", "16 rows, 544 bytes", "2 and 3 tokens"]:
            self.assertIn(words, text)

    def test_a_model_without_a_table_is_no_error(self):
        path = self.file("plain.gguf", gguf())
        document = self.json("inspect", path)
        self.assertEqual((document["tables"], document["family"], document["model_type"]), ([], None, "llama"))
        self.assertEqual((document["bytes_table"], document["bytes_rest"]), (0, path.stat().st_size))
        self.assertIn("No conditional-memory table", self.succeed("inspect", path).output)

    def test_what_is_no_checkpoint_is_refused(self):
        model = MODEL.read_bytes()
        self.fail_with(REFUSED, "not_found", "inspect", self.folder / "absent", words=[self.folder / "absent"])
        self.fail_with(REFUSED, "not_found", "inspect", self.folder, words=[self.folder, "no *.safetensors file"])
        for name, content in [("empty", b""), ("text", b"Once upon a time there was no model.\n" * 9),
                              ("header", model[:100_000]), ("cut", model[:-1]), ("no-tensors", gguf()[:-1])]:
            path = self.file(name, content)
            with self.subTest(name):
                self.fail_with(REFUSED, "malformed", "inspect", path, words=[path])

    def test_a_name_that_is_no_utf8_still_gives_json(self):
        path = os.fsencode(self.folder) + b"/m\xff.gguf"
        with open(path, "wb") as file:
            file.write(gguf())
        self.assertEqual(self.json("inspect", os.fsdecode(path))["path"], f"{self.folder}/m\ufffd.gguf")


if __name__ == "__main__":
    unittest.main()
