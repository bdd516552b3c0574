"""rowtide bench cache: shares computed a second time, from the row ids that `rowtide address` gives."""
import array
import collections
import json
import random
import unittest

import checkpoints
from program import MODEL, ProgramTest, REFUSED, ROW_BYTES, SOURCE, TABLE, USAGE, gguf

CHUNK = 32
BUNDLE_BYTES = 8 * (ROW_BYTES + 4) + 8 + 13


def some_tokens(count):
    """Phrases that come back."""
    draw = random.Random(4)
    phrases = [[draw.randrange(4096) for _ in range(draw.randrange(2, 30))] for _ in range(60)]
    tokens = []
    while len(tokens) < count:
        tokens += draw.choice(phrases)
    return tokens[:count]


class BenchCache(ProgramTest):
    def trace(self, tokens, name="trace.i32"):
        return self.file(name, array.array("i", tokens).tobytes())

    def bundles(self, *source, tokens):
        """The bundles of each batch, as tuples of row ids."""
        listed = self.json("address", *source, "--tokens-file", self.file("tokens", " ".join(map(str, tokens))))
        rows = listed["tables"][0]["rows"]
        in_order = [[tuple(row[:8]), tuple(row[8:])] for row in rows]
        return [sum(in_order[i:i + CHUNK], []) for i in range(0, len(in_order), CHUNK)]

    def lru_share(self, batches, room):
        recent, served, asked = collections.OrderedDict(), 0, 0
        for batch in batches:
            distinct = list(dict.fromkeys(batch))
            asked += len(batch)
            served += len(batch) - len(distinct) + sum(bundle in recent for bundle in distinct)
            for bundle in distinct:
                recent[bundle] = True
                recent.move_to_end(bundle)
                if len(recent) > room:
                    recent.popitem(last=False)
        return served / asked

    def test_lookups_and_the_shares_of_lru(self):
        tokens = some_tokens(3000)
        batches = self.bundles(MODEL, tokens=tokens)
        sizes = [20_000, 100_000, 400_000]
        document = self.json("bench", "cache", MODEL, "--trace", self.trace(tokens), "--chunk", CHUNK,
                             "--policy", "lru", "--memory", ",".join(map(str, sizes)))
        self.assertEqual(document["lookups"], 6000)
        self.assertEqual(document["distinct"], len(set(sum(batches, []))))
        self.assertEqual((document["table"], document["row_bytes"], document["chunk"]), (TABLE, ROW_BYTES, CHUNK))
        [policy] = document["policies"]
        self.assertEqual(policy["name"], "lru")
        self.assertEqual([point["memory_bytes"] for point in policy["points"]], sizes)
        for point in policy["points"]:
            expected = self.lru_share(batches, point["memory_bytes"] // (BUNDLE_BYTES + 8))
            self.assertAlmostEqual(point["hit_share"], expected, places=12)
        shares = [point["hit_share"] for point in policy["points"]]
        self.assertLess(shares[0], shares[1])
        self.assertLess(shares[1], shares[2])

    def test_all_policies_by_default_and_none_beats_the_optimum(self):
        document = self.json("bench", "cache", MODEL, "--trace", self.trace(some_tokens(3000)), "--chunk", CHUNK,
                             "--memory", "0.1MiB,1GiB")
        shares = {policy["name"]: [point["hit_share"] for point in policy["points"]] for policy in document["policies"]}
        self.assertEqual(list(shares), ["rowtide", "s3fifo", "lru", "static", "page_cache", "optimum"])
        for name in ["s3fifo", "lru"]:
            self.assertLess(shares[name][0], shares["optimum"][0])
            self.assertEqual(shares[name][1], shares["optimum"][1])  # everything that was asked for stays
        self.assertAlmostEqual(shares["optimum"][1], 1 - document["distinct"] / document["lookups"], places=12)

    def test_a_family_without_a_checkpoint(self):
        tokens = some_tokens(500)
        batches = self.bundles("--family", "qwen_ple", tokens=tokens)
        document = self.json("bench", "cache", "--family", "qwen_ple", "--row-bytes", 90, "--trace", self.trace(tokens),
                             "--memory", "1MiB")
        self.assertEqual(document["distinct"], len(set(sum(batches, []))))
        self.assertEqual(document["row_bytes"], 90)

    def test_families_with_other_orders_and_a_token_map(self):
        trace = self.trace(some_tokens(500))
        for family, lookups, rows in [(["longcat"], 1500, 4), (["unigram"], 500, 1),
                                      (["deepseek_engram", "--token-map", "identity"], 1500, 8)]:
            document = self.json("bench", "cache", "--family", *family, "--row-bytes", 264, "--trace", trace,
                                 "--policy", "lru", "--memory", "1MiB")
            self.assertEqual((document["lookups"], document["rows_per_lookup"]), (lookups, rows), family)

    def test_a_checkpoint_that_hashes_compressed_ids(self):
        folder = checkpoints.tiny_deepseek().write(self.folder / "model")
        tokens = [token % 500 for token in some_tokens(500)]
        trace = self.trace(tokens)
        self.fail_with(REFUSED, "not_found", "bench", "cache", folder, "--trace", trace,
                       words=[folder, "compressed ids", "tokenizer.json", "--token-map"])
        longer_map = self.file("map.i32le", array.array("i", [*range(250), *range(250), *range(250, 500)]).tobytes())
        for token_map in ["identity", longer_map]:
            addressed = self.json("address", folder, "--token-map", token_map, "--tokens", ",".join(map(str, tokens)))
            rows = addressed["tables"][0]["rows"]
            bundles = {tuple(row[at:at + 8]) for row in rows for at in [0, 8, 16]}
            document = self.json("bench", "cache", folder, "--token-map", token_map, "--trace", trace, "--policy", "lru",
                                 "--memory", "1MiB")
            self.assertEqual((document["table"], document["row_bytes"], document["lookups"], document["distinct"]),
                             ("layers.1.engram.embed", 66, 1500, len(bundles)))

    def test_a_table_for_people(self):
        trace = self.trace(some_tokens(300))
        text = self.succeed("bench", "cache", MODEL, "--trace", trace, "--memory", "1MiB,1GiB,1000").output
        for words in ["600 lookups of 8 rows in batches of 512 tokens", "1 MiB", "1 GiB", "1,000 bytes", "page_cache"]:
            self.assertIn(words, text)

    def test_text_is_cut_by_the_model_s_own_tokenizer(self):
        text = self.file("text", (SOURCE / "models" / "heldout.txt").read_text()[:2000])
        generated = self.run_program("generate", "-m", MODEL, "-f", text, "-n", 1, "--json")
        if "without llama.cpp" in generated.messages:
            self.fail_with(USAGE, "usage", "bench", "cache", MODEL, "--text", text, words=["without llama.cpp"])
            return
        document = self.json("bench", "cache", MODEL, "--text", text, "--memory", "1MiB")
        self.assertEqual(document["lookups"], 2 * json.loads(generated.output)["prompt_tokens"])

    def test_what_goes_together(self):
        trace = self.trace([1, 2])
        for arguments, words in [
            ([], ["PATH", "--family"]),
            ([MODEL, "--family", "qwen_ple", "--trace", trace], ["PATH", "--family"]),
            ([MODEL], ["--trace", "--text"]),
            ([MODEL, "--trace", trace, "--text", trace], ["--trace", "--text"]),
            (["--family", "qwen_ple", "--trace", trace], ["--row-bytes"]),
            ([MODEL, "--token-map", "identity", "--trace", trace], ["--token-map: qwen_ple hashes the tokenizer's own ids"]),
            (["--family", "longcat", "--row-bytes", "90", "--token-map", "identity", "--trace", trace],
             ["--token-map: longcat hashes the tokenizer's own ids"]),
            (["--family", "engram_demo", "--row-bytes", "256", "--trace", trace], ["--token-map"]),
            ([MODEL, "--row-bytes", "90", "--trace", trace], ["--row-bytes"]),
            (["--family", "qwen_ple", "--row-bytes", "90", "--text", trace], ["--text needs a PATH"]),
            (["--family", "qwen_ple", "--row-bytes", "90", "--text", trace, "--tokenizer", "t.json"],
             ["--tokenizer", "corpora.sh trace", "--trace"]),
            ([MODEL, "--trace", trace, "--memory", "1GiB,none"], ["--memory", "'none'"]),
            ([MODEL, "--trace", trace, "--memory", "0"], ["--memory"]),
            ([MODEL, "--trace", trace, "--policy", "lru,s3fifi"], ["'s3fifi'", "s3fifo"]),
            ([MODEL, "--trace", trace, "--policy", "s3fifo:smal=1"], ["'smal'"]),
            ([MODEL, "--trace", trace, "--chunk", "0"], ["--chunk"]),
        ]:
            with self.subTest(arguments):
                self.fail_with(USAGE, "usage", "bench", "cache", *arguments, words=words)

    def test_input_that_is_refused(self):
        trace = self.trace([1, 2])
        self.fail_with(REFUSED, "not_found", "bench", "cache", MODEL, "--trace", self.folder / "none", words=["none"])
        for content in [b"", b"12345"]:
            path = self.file("odd.i32", content)
            self.fail_with(REFUSED, "malformed", "bench", "cache", MODEL, "--trace", path, words=[path, "int32"])
        plain = self.file("plain.gguf", gguf())
        self.fail_with(REFUSED, "not_found", "bench", "cache", plain, "--trace", trace, words=[plain, "no conditional"])

    def test_the_list_of_benchmarks(self):
        self.assertIn("  cache ", self.succeed("bench", "--help").output)
        self.assertIn("Examples:\n  rowtide bench cache", self.succeed("bench", "cache", "--help").output)
        self.fail_with(USAGE, "usage", "bench", words=["rowtide bench --help"])
        self.fail_with(USAGE, "usage", "bench", "cash", words=["'cash'", "did you mean 'cache'?"])


if __name__ == "__main__":
    unittest.main()
