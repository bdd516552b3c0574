"""rowtide address: the golden cases through the program, by family, by config.json and by checkpoint."""
import json
import unittest

from program import MODEL, ProgramTest, REFUSED, SOURCE, TABLE, USAGE, gguf

GOLDEN = json.loads((SOURCE / "tests" / "golden" / "qwen_ple.json").read_text())["configs"]


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

    def test_families(self):
        self.fail_with(USAGE, "usage", "address", "--family", "qwen_pel", "--tokens", "1",
                       words=["'qwen_pel'", "did you mean 'qwen_ple'?"])
        for family in ["deepseek_engram", "engram_demo", "longcat", "unigram"]:
            self.fail_with(REFUSED, "unsupported", "address", "--family", family, "--tokens", "1", words=[family])

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
                ([*family, "--tokens", "1", "--token-map", "identity"], "--token-map: qwen_ple")]:
            with self.subTest(words):
                self.fail_with(USAGE, "usage", "address", *arguments, words=[words])

    def test_files_that_do_not_serve(self):
        absent = self.folder / "absent"
        self.fail_with(REFUSED, "io", "address", "--config", absent, "--tokens", "1", words=[absent, "errno 2"])
        self.fail_with(REFUSED, "io", "address", "--family", "qwen_ple", "--tokens-file", self.folder, words=[self.folder])
        plain = self.file("plain.gguf", gguf())
        self.fail_with(REFUSED, "not_found", "address", plain, "--tokens", "1", words=[plain, "no conditional-memory table"])
        self.fail_with(REFUSED, "not_found", "address", absent, "--tokens", "1", words=[absent])

    def test_configs_that_do_not_serve(self):
        golden = GOLDEN[1]["config"]
        for content, words in [
                ("{", ["not a JSON object"]), ("[1]", ["not a JSON object"]), ("[" * 100_000, ["not a JSON object"]),
                ("{}", ["ple_layer_ids", "eos_token_id"]),
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
