"""rowtide address: the golden cases through the program, by family, by config.json and by checkpoint."""
import json
import struct
import unittest

from program import MODEL, ProgramTest, REFUSED, SOURCE, TABLE, USAGE, gguf

def golden(name):
    return json.loads((SOURCE / "tests" / "golden" / name).read_text())["configs"]


GOLDEN = golden("qwen_ple.json")
TOKEN_MAP = SOURCE / "tests" / "golden" / "deepseek_v41_token_map.i32le"


def listed(ids):
    return ",".join(map(str, ids))


def model_config(golden, nested=True, **changes):
    """A config.json with the keys of a golden configuration; its table is the last of the model's."""
    keys = ["vocab_size", "eos_token_id", "ngram_vocab_size_base", "ngram_size", "heads_per_ngram", "ple_embed_dim"]
    text = {key: golden[key] for key in keys} | {"seed": int(golden["seed"])}
    text["ple_layer_ids"] = [2 * i + 2 for i in range(golden["dense_ple_index"] + 1)]
    text |= changes
    return json.dumps({"image_token_id": 3, "text_config": text} if nested else text)


class Address(ProgramTest):
    def check_case(self, case, *source, table=0):
        history = ["--history", listed(case["history"])] if "history" in case else []
        document = self.json("address", *source, "--tokens=" + listed(case["tokens"]), *history)
        self.assertEqual(document["family"], "qwen_ple")
        self.assertEqual(document["tables"][table]["rows"], case["rows"], case["name"])
        self.assertEqual(document["tables"][table]["rows_per_token"], len(case["rows"][0]))
        self.assertEqual(document["history_after"], case["history_after"], case["name"])
        return document

    def test_the_released_family(self):
        cases = [case for case in GOLDEN[0]["cases"] if "rows" in case]
        self.assertGreater(len(cases), 20)
        for case in cases:
            document = self.check_case(case, "--family", "qwen_ple")
            self.assertEqual(document["tables"][0]["layer"], 1)

    def test_a_config_file(self):
        for number, golden in enumerate(GOLDEN):
            index = golden["config"]["dense_ple_index"]
            path = self.file(f"{number}.json", model_config(golden["config"], nested=number % 2 == 0))
            for case in golden["cases"][-3:]:
                if "rows" in case:
                    document = self.check_case(case, "--config", path, table=index)
                    self.assertEqual([table["layer"] for table in document["tables"]], [1, 3][:index + 1])

    def test_what_a_config_may_leave_out(self):
        case = GOLDEN[0]["cases"][5]
        path = self.file("config.json", json.dumps({"text_config": {"ple_layer_ids": [2], "eos_token_id": [248044, 1]}}))
        self.check_case(case, "--config", path)

    def test_a_checkpoint(self):
        document = self.json("address", MODEL, "--tokens", "17 4 4093")
        self.assertEqual((document["tables"][0]["name"], document["tables"][0]["layer"]), (TABLE, 1))
        config = self.file("config.json", json.dumps({
            "vocab_size": 4096, "eos_token_id": 4093, "ngram_vocab_size_base": 43000, "ple_layer_ids": [2]}))
        expected = self.json("address", "--config", config, "--tokens", "17 4 4093")
        self.assertEqual(document["tables"][0]["rows"], expected["tables"][0]["rows"])

    def test_chunks_with_carried_history_give_the_same_rows(self):
        tokens = [9707, 11, 248044, 1879, 0, 42, 7]
        whole = self.json("address", "--family", "qwen_ple", "--tokens", listed(tokens))
        rows, history = [], []
        for chunk in [tokens[:3], [], tokens[3:4], tokens[4:]]:
            document = self.json("address", "--family", "qwen_ple", "--tokens", listed(chunk), "--history", listed(history))
            rows += document["tables"][0]["rows"]
            history = document["history_after"]
        self.assertEqual(rows, whole["tables"][0]["rows"])
        self.assertEqual(history, whole["history_after"])

    def test_history_longer_than_needed_counts_from_its_end(self):
        short = self.json("address", "--family", "qwen_ple", "--tokens", "5", "--history", "2,3")
        self.assertEqual(self.json("address", "--family", "qwen_ple", "--tokens", "5", "--history", "9,1,2,3"), short)

    def test_the_ways_to_write_tokens(self):
        expected = self.json("address", "--family", "qwen_ple", "--tokens", "-1,22,333")
        path = self.file("ids.txt", "-1 22\n\n\t333\r\n")
        for arguments in [["--tokens", " -1, 22 333 "], ["--tokens=-1\n22\t333"], ["--tokens-file", path]]:
            self.assertEqual(self.json("address", "--family", "qwen_ple", *arguments), expected)
        self.assertEqual(self.json("address", "--family", "qwen_ple", "--tokens-file", "-", input=b"-1\n22 333"), expected)

    def test_for_people_one_line_a_token(self):
        ended = self.succeed("address", "--family", "qwen_ple", "--tokens", "9707,11")
        lines = ended.output.splitlines()
        rows = GOLDEN[0]["cases"][5]["rows"][0]
        self.assertEqual(len(lines), 2)
        self.assertEqual(lines[0], f"9707: {' '.join(map(str, rows[:8]))} | {' '.join(map(str, rows[8:]))}")
        self.assertIn("--history: 9707,11", ended.messages)

    def test_the_released_engram_families(self):
        for family, name, layers in [("deepseek_engram", "deepseek_engram_v41.json", [1, 14]),
                                     ("engram_demo", "engram_demo.json", [1, 15])]:
            cases = [case for case in golden(name)[0]["cases"] if "rows" in case]
            self.assertGreater(len(cases), 12)
            for case in cases:
                history = ["--history", listed(case["history"])] if "history" in case else []
                document = self.json("address", "--family", family, "--token-map", "identity",
                                     "--tokens=" + listed(case["tokens"]), *history)
                self.assertEqual(document["family"], family)
                self.assertEqual([table["layer"] for table in document["tables"]], layers)
                rows = [list(position) for position in zip(*[table["rows"] for table in document["tables"]])]
                self.assertEqual(rows, case["rows"], case["name"])
                self.assertEqual(document["history_after"], case.get("history_after", document["history_after"]))

    def test_tokenizer_ids_through_a_map_file(self):
        cases = [case for case in golden("deepseek_engram_v41.json")[0]["cases"] if "raw_tokens" in case]
        self.assertEqual(len(cases), 2)
        for case in cases:
            document = self.json("address", "--family", "deepseek_engram", "--token-map", TOKEN_MAP,
                                 "--tokens", listed(case["raw_tokens"]))
            rows = [list(position) for position in zip(*[table["rows"] for table in document["tables"]])]
            self.assertEqual(rows, case["rows"], case["name"])
            self.assertEqual(document["history_after"], case["raw_tokens"][-3:])

    def test_the_released_longcat(self):
        entry = golden("longcat.json")[0]
        offsets = [table["offset_if_concatenated"] for table in entry["derived"]["tables"]]
        cases = [case for case in entry["cases"] if "rows" in case]
        self.assertGreater(len(cases), 20)
        for case in cases:
            history = ["--history", listed(case["history"])] if "history" in case else []
            document = self.json("address", "--family", "longcat", "--tokens", listed(case["tokens"]), *history)
            expected = [[row + offset for row, offset in zip(rows, offsets)] for rows in case["rows"]]
            self.assertEqual(document["tables"][0]["rows"], expected, case["name"])
            self.assertEqual(document["history_after"], case["history_after"])

    def test_unigram(self):
        document = self.json("address", "--family", "unigram", "--tokens=17,262143,262144,-1", "--history", "4")
        self.assertEqual(document["tables"][0]["rows"], [[17], [262143], [0], [0]])
        self.assertEqual(document["history_after"], [])
        self.assertEqual(self.succeed("address", "--family", "unigram", "--tokens", "17").messages, "")

    def test_several_tables_for_people(self):
        ended = self.succeed("address", "--family", "deepseek_engram", "--token-map", TOKEN_MAP, "--tokens", "0,3")
        lines = ended.output.splitlines()
        self.assertEqual([lines[0], lines[3]], ["layers.1.engram.embed", "layers.14.engram.embed"])
        self.assertTrue(lines[1].startswith("0: 5702652 24393184 ") and lines[1].count(" | ") == 2, lines[1])
        self.assertIn("--history: 0,3", ended.messages)

    def test_token_maps_that_do_not_serve(self):
        tokenizer = json.dumps({"model": {"type": "BPE", "vocab": {"a": 0, "A": 1, "b": 2}},
                                "decoder": {"type": "ByteLevel"}})
        unigram = json.dumps({"model": {"type": "Unigram", "vocab": []}})
        for content, code, words in [
                (struct.pack("<3i", 0, 1, 1), "mismatch", ["2 compressed ids", "99092"]),
                (struct.pack("<3i", 0, 2, 1), "malformed", ["token 1", "compressed id 2"]),
                (b"\0" * 5, "malformed", ["no token map", "tokenizer.json"]),
                (b"", "malformed", ["no token map"]),
                (tokenizer, "mismatch", ["2 compressed ids", "99092"]),
                (unigram, "unsupported", ["unigram"]),
                ("{", "malformed", ["map"])]:
            path = self.file("map", content)
            with self.subTest(str(content)[:60]):
                self.fail_with(REFUSED, code, "address", "--family", "deepseek_engram", "--token-map", path,
                               "--tokens", "1", words=words)
        self.fail_with(REFUSED, "not_found", "address", "--family", "engram_demo", "--token-map", self.folder / "absent",
                       "--tokens", "1", words=[self.folder / "absent"])

    def test_families(self):
        self.fail_with(USAGE, "usage", "address", "--family", "qwen_pel", "--tokens", "1",
                       words=["'qwen_pel'", "did you mean 'qwen_ple'?", "longcat"])
        for family in ["deepseek_engram", "engram_demo"]:
            self.fail_with(USAGE, "usage", "address", "--family", family, "--tokens", "1",
                           words=[family, "--token-map", "tokenizer.json", "identity"])
        for family in ["qwen_ple", "longcat", "unigram"]:
            self.fail_with(USAGE, "usage", "address", "--family", family, "--tokens", "1", "--token-map", "identity",
                           words=["--token-map", family])

    def test_usage(self):
        family = ["--family", "qwen_ple"]
        for arguments, words in [
                (["--tokens", "1"], "one of PATH, --family and --config"),
                ([MODEL, *family, "--tokens", "1"], "one of PATH, --family and --config"),
                (family, "one of --tokens and --tokens-file"),
                ([*family, "--tokens", "1", "--tokens-file", "x"], "one of --tokens and --tokens-file"),
                ([*family, "--tokens", "1,two"], "--tokens: 'two'"),
                ([*family, "--tokens", "1.5"], "--tokens: '1.5'"),
                ([*family, "--tokens", "9223372036854775808"], "--tokens: '9223372036854775808'"),
                ([*family, "--tokens", "1", "--history", "x"], "--history: 'x'"),
                ([*family, "--tokens-file", self.file("ids", "1 2 III")], "--tokens-file: 'III'"),
                ([MODEL, "--tokens", "1", "--token-map", "identity"], "--token-map: qwen_ple")]:
            with self.subTest(words):
                self.fail_with(USAGE, "usage", "address", *arguments, words=[words])

    def test_files_that_do_not_serve(self):
        absent = self.folder / "absent"
        for source in [["--config", absent, "--tokens", "1"], [MODEL, "--tokens-file", absent]]:
            self.fail_with(REFUSED, "not_found", "address", *source, words=[absent, "errno 2"])
        self.fail_with(REFUSED, "io", "address", "--family", "qwen_ple", "--tokens-file", self.folder, words=[self.folder])
        plain = self.file("plain.gguf", gguf())
        self.fail_with(REFUSED, "not_found", "address", plain, "--tokens", "1", words=[plain, "no conditional-memory table"])
        self.fail_with(REFUSED, "not_found", "address", absent, "--tokens", "1", words=[absent])

    def test_configs_that_do_not_serve(self):
        golden = GOLDEN[1]["config"]
        for content, words in [
                ("{", ["is not JSON"]), ("[1]", ["a list stands where"]), ("[" * 100_000, ["a list stands where"]),
                ("{}", ["ple_layer_ids", "engram_layer_ids"]),
                (model_config(golden, ple_layer_ids=[]), ["ple_layer_ids"]),
                (model_config(golden, ple_layer_ids=[0]), ["ple_layer_ids", "counted from 1"]),
                (model_config(golden, ple_layer_ids=["two"]), ["ple_layer_ids", '"two"']),
                (model_config(golden, eos_token_id=None), ["eos_token_id"]),
                (model_config(golden, eos_token_id=[]), ["eos_token_id", "[]"]),
                (model_config(golden, vocab_size=1.5), ["vocab_size", "1.5"]),
                (model_config(golden, seed=-1), ["seed", "-1"]),
                (model_config(golden, heads_per_ngram=2**40), ["heads_per_ngram", str(2**40)])]:
            path = self.file("config.json", content)
            with self.subTest(content[:60]):
                message = self.fail_with(REFUSED, "malformed", "address", "--config", path, "--tokens", "1", words=[path])
                self.assertTrue(any(word in message for word in words), message)

    def test_a_config_that_no_model_can_have(self):
        for changes, word in [({"vocab_size": 0}, "vocab_size"), ({"ngram_size": 1}, "ngram_size"),
                              ({"ngram_size": 9}, "ngram_size"), ({"heads_per_ngram": 0}, "heads_per_order 0")]:
            path = self.file("config.json", model_config(GOLDEN[1]["config"], **changes))
            with self.subTest(str(changes)):
                self.fail_with(REFUSED, "malformed", "address", "--config", path, "--tokens", "1", words=[path, word])


if __name__ == "__main__":
    unittest.main()
