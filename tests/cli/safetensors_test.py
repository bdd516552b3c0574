"""Safetensors checkpoints through the program: each form of table, its rows and addresses; folders, snapshots, bad parts."""
import json
import os
import resource
import struct
import subprocess
import unittest

import checkpoints
from checkpoints import MICRO_ROWS, MICRO_TABLE, Tensor
from program import DONE, Ended, PROGRAM, ProgramTest, REFUSED, SOURCE

GOLDEN = SOURCE / "tests" / "golden"
SANITIZED = "ROWTIDE_SANITIZED" in os.environ


def e4m3(code):
    """The value of an E4M3FN code; None for NaN."""
    exponent, mantissa = code >> 3 & 15, code & 7
    if code & 127 == 127:
        return None
    value = mantissa * 2.0**-9 if exponent == 0 else (1 + mantissa / 8) * 2.0**(exponent - 7)
    return -value if code & 128 else value


def f32_bits(value):
    return struct.unpack("<I", struct.pack("<f", value))[0]


def f32(value):
    return struct.unpack("<f", struct.pack("<f", value))[0]


def nvfp4(row):
    levels = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]
    for i in range(32):
        code, scale = row[i // 2] >> 4 * (i % 2) & 15, e4m3(row[16 + i // 16])
        if scale is None:
            yield None
        else:
            yield f32((-levels[code & 7] if code & 8 else levels[code]) * scale * f32(0.001))


def fp8_ue8m0(row):
    values = len(row) * 32 // 33
    for i in range(values):
        code, scale = e4m3(row[i]), row[values + i // 32]
        if code is None or scale == 255:
            yield None
        else:
            try:
                yield f32(code * 2.0**(scale - 127))
            except OverflowError:
                yield float("-inf") if code < 0 else float("inf")


DECODED = {
    "bf16": lambda row: [struct.unpack("<f", b"\0\0" + row[i:i + 2])[0] for i in range(0, len(row), 2)],
    "fp8": lambda row: [None if e4m3(code) is None else e4m3(code) * struct.unpack("<f", b"\0\0\x51\x39")[0] for code in row],
    "nvfp4": nvfp4,
    "fp8_ue8m0": fp8_ue8m0,
}
# form: (model, row format, golden file, configuration there)
FORMS = {
    "Qwen BF16": (lambda: checkpoints.micro_qwen("BF16"), "bf16", "qwen_ple", "micro"),
    "Qwen FP8": (lambda: checkpoints.micro_qwen("F8_E4M3"), "fp8", "qwen_ple", "micro"),
    "Qwen NVFP4": (lambda: checkpoints.micro_qwen("U8"), "nvfp4", "qwen_ple", "micro"),
    "DeepSeek": (checkpoints.tiny_deepseek, "fp8_ue8m0", "deepseek_engram_v41", "tiny"),
    "LongCat": (checkpoints.toy_longcat, "bf16", "longcat", "toy"),
    "Gemma": (checkpoints.small_gemma, "bf16", None, None),
}


class Safetensors(ProgramTest):
    def written(self, small, name="model", **more):
        return small.write(self.folder / name, **more)

    def rows(self, path, table, ids, *arguments):
        return self.json("rows", path, "--table", table, "--ids", ",".join(map(str, ids)), *arguments)


class Forms(Safetensors):
    def test_every_row_of_every_form(self):
        for form, (make, row_format, _, _) in FORMS.items():
            small = make()
            folder = self.written(small, form)
            for table, rows in small.rows.items():
                with self.subTest(form=form, table=table):
                    document = self.rows(folder, table, range(len(rows)))
                    self.assertEqual(document["row_format"], row_format)
                    self.assertEqual([row["raw"] for row in document["rows"]], [row.hex() for row in rows])

    def test_values_of_every_form(self):
        for form, (make, row_format, _, _) in FORMS.items():
            small = make()
            folder = self.written(small, form)
            for table, rows in small.rows.items():
                document = self.rows(folder, table, range(len(rows)), "--format", "f32")
                for row, stored in zip(document["rows"], rows):
                    words = [int(row["values"][i:i + 8], 16) for i in range(0, len(row["values"]), 8)]
                    for word, value in zip(words, DECODED[row_format](stored), strict=True):
                        if value is None or value != value:
                            self.assertGreater(word & 0x7FFFFFFF, 0x7F800000, (form, row))
                        else:
                            self.assertEqual(f"{word:08x}", f"{f32_bits(value):08x}", (form, row["id"]))

    def test_addresses_are_the_golden_ones(self):
        for form, (make, _, golden, name) in FORMS.items():
            if golden is None:
                continue
            folder = self.written(make(), form)
            configs = json.loads((GOLDEN / f"{golden}.json").read_text())["configs"]
            config = next(config for config in configs if config["name"] == name)
            offsets = ([table["offset_if_concatenated"] for table in config["derived"]["tables"]]
                       if golden == "longcat" else None)
            for case in config["cases"]:
                if "rows" not in case or "history" in case or any(token < -1 for token in case["tokens"]):
                    continue
                with self.subTest(form=form, case=case["name"]):
                    more = ["--token-map", "identity"] if golden == "deepseek_engram_v41" else []
                    document = self.json("address", folder, "--tokens=" + ",".join(map(str, case["tokens"])), *more)
                    for at, table in enumerate(document["tables"]):
                        expected = case["rows"]
                        if golden == "deepseek_engram_v41":
                            expected = [layers[at] for layers in expected]
                        if offsets:
                            expected = [[local + offset for local, offset in zip(row, offsets)] for row in expected]
                        self.assertEqual(table["rows"], expected)

    def test_gemma_reads_the_row_of_the_token(self):
        document = self.json("address", self.written(checkpoints.small_gemma()), "--tokens", "5 0 31 5")
        self.assertEqual(document["family"], "unigram")
        self.assertEqual(document["tables"][0]["rows"], [[5], [0], [31], [5]])

    def test_gemma_4_reads_the_pad_row_where_no_text_is(self):
        small = checkpoints.small_gemma()
        small.config |= {"model_type": "gemma4", "architectures": ["Gemma4ForConditionalGeneration"],
                         "image_token_id": 30, "audio_token_id": 29, "video_token_id": 28}
        small.config["text_config"]["pad_token_id"] = 2
        document = self.json("address", self.written(small), "--tokens", "27 28 29 30 31 40")
        self.assertEqual(document["tables"][0]["rows"], [[27], [2], [2], [2], [31], [0]])

    def test_names_of_other_classes_of_the_models(self):
        for make, name in [(lambda: checkpoints.micro_qwen("U8"), "model.language_model."), (checkpoints.tiny_deepseek, ""),
                           (checkpoints.toy_longcat, "model."), (checkpoints.small_gemma, "model.language_model.")]:
            for prefix in ["", "model.", "language_model.", "model.language_model.", "language_model.model."]:
                small = make()
                small.shards = [{prefix + key.removeprefix(name): tensor for key, tensor in shard.items()}
                                for shard in small.shards]
                rows = next(iter(small.rows.values()))
                folder = self.written(small, f"{small.config['model_type']}-{prefix}")
                table = self.json("inspect", folder)["tables"][0]["name"]
                self.assertTrue(table.startswith(prefix), table)
                self.assertEqual([row["raw"] for row in self.rows(folder, table, [0, len(rows) - 1])["rows"]],
                                 [rows[0].hex(), rows[-1].hex()])

    def test_names_of_types_in_the_config(self):
        for dtype, names in [("BF16", ["bfloat16", "torch.bfloat16", "bf16", "auto", ""]),
                             ("F8_E4M3", ["float8_e4m3fn", "torch.float8_e4m3fn", "float8_e4m3", "fp8"]), ("U8", ["nvfp4"])]:
            for name in names:
                small = checkpoints.micro_qwen(dtype)
                small.config = checkpoints.micro_config(ple_embedding_dtype=name)
                self.assertEqual(len(self.json("inspect", self.written(small))["tables"]), 1, name)

    def test_inspect(self):
        small = checkpoints.micro_qwen("U8")
        document = self.json("inspect", self.written(small))
        table = document["tables"][0]
        self.assertEqual((document["format"], document["family"], document["model_type"]),
                         ("safetensors", "qwen_ple", "qwen4_exp"))
        self.assertEqual((table["name"], table["layer"], table["rows"], table["row_bytes"], table["row_format"],
                          table["row_values"], table["rows_per_token"]), (MICRO_TABLE, 1, MICRO_ROWS, 18, "nvfp4", 32, 4))
        self.assertEqual([extent["rows"] for extent in table["extents"]], [85, 85, 85, 85, 84] * 2)
        self.assertEqual(document["bytes_table"], MICRO_ROWS * 18)

    def test_a_config_alone_addresses_as_its_checkpoint_does(self):
        for form, (make, _, _, _) in FORMS.items():
            folder = self.written(make(), form)
            more = ["--token-map", "identity"] if form == "DeepSeek" else []
            asked = ["--tokens", "3 4 1 6 7", *more]
            self.assertEqual(self.json("address", "--config", folder / "config.json", *asked)["tables"],
                             self.json("address", folder, *asked)["tables"], form)


class WhereItLies(Safetensors):
    """A checkpoint is found by its folder, its index, its file; in a hub's cache by snapshot or repository."""

    def identity(self, path):
        return self.json("inspect", path)["tables"][0]["identity"]

    def test_folder_and_index(self):
        folder = self.written(checkpoints.micro_qwen("BF16"))
        self.assertEqual(self.identity(folder), self.identity(folder / "model.safetensors.index.json"))

    def test_single_file(self):
        folder = self.written(checkpoints.micro_qwen("BF16", shards=1))
        self.assertEqual(self.identity(folder), self.identity(folder / "model.safetensors"))

    def snapshot(self, name, leave_out=()):
        """A snapshot of a hub's cache: links to blobs."""
        folder = self.written(checkpoints.micro_qwen("BF16"), "made")
        repository = self.folder / "hub" / "models--org--name"
        snapshot = repository / "snapshots" / name
        snapshot.mkdir(parents=True)
        (repository / "blobs").mkdir(exist_ok=True)
        for file in folder.iterdir():
            blob = repository / "blobs" / file.name
            blob.write_bytes(file.read_bytes())
            if file.name not in leave_out:
                (snapshot / file.name).symlink_to(os.path.relpath(blob, snapshot))
        return repository, snapshot

    def test_incomplete_snapshot_first(self):  # the alphabetically first one lacks a shard
        missing = "model-00003-of-00005.safetensors"
        _, complete = self.snapshot("bbbb")
        repository, incomplete = self.snapshot("aaaa", leave_out=[missing])
        ended = self.succeed("inspect", repository, "--json")
        document = json.loads(ended.output)
        self.assertTrue(all("/bbbb/" in file["path"] for file in document["files"]), document["files"])
        for word in ["bbbb", "aaaa", missing]:
            self.assertIn(word, ended.messages)
        self.assertEqual(self.identity(complete), document["tables"][0]["identity"])
        self.fail_with(REFUSED, "not_found", "inspect", incomplete, words=[missing])

    def test_no_snapshot_is_complete(self):
        missing = "model-00001-of-00005.safetensors"
        repository, _ = self.snapshot("aaaa", leave_out=[missing])
        self.fail_with(REFUSED, "not_found", "inspect", repository, words=[missing])


class BadParts(Safetensors):
    def refused(self, code, small, *words, config=None):
        folder = self.folder / f"bad-{len(list(self.folder.iterdir()))}"
        small.config = config or small.config
        small.write(folder)
        for command in [["inspect", folder], ["rows", folder, "--ids", "0"], ["address", folder, "--tokens", "1"]]:
            self.fail_with(REFUSED, code, *command, words=words)

    def test_missing_scales(self):
        for dtype, name in [("F8_E4M3", ".weight_scale"), ("U8", ".shard_2.weight_scale"), ("U8", ".shard_3.weight_scale_2")]:
            small = checkpoints.micro_qwen(dtype)
            for shard in small.shards:
                shard.pop(MICRO_TABLE + name, None)
            self.refused("malformed", small, f"'{MICRO_TABLE}{name}'", "missing")
        small = checkpoints.tiny_deepseek()
        del small.shards[1]["layers.3.engram.embed.scale"]
        self.refused("malformed", small, "'layers.3.engram.embed.scale'", "missing")

    def test_scales_that_are_none(self):
        for bits, words in [(0, "0 is no scale"), (0x8000, "-0 is no scale"), (0x7F80, "inf is no scale"), (0x7FC1, "nan")]:
            small = checkpoints.micro_qwen("F8_E4M3")
            small.shards[0][MICRO_TABLE + ".weight_scale"] = Tensor("BF16", [1], struct.pack("<H", bits))
            self.refused("malformed", small, MICRO_TABLE + ".weight_scale", words)
        for value in [0.0, float("inf"), float("nan")]:
            small = checkpoints.micro_qwen("U8")
            small.shards[4][MICRO_TABLE + ".shard_4.weight_scale_2"] = Tensor("F32", [], struct.pack("<f", value))
            self.refused("malformed", small, "shard_4.weight_scale_2", "is no scale")

    def test_factors_that_differ(self):
        small = checkpoints.micro_qwen("U8")
        small.shards[4][MICRO_TABLE + ".shard_4.weight_scale_2"] = Tensor("F32", [], struct.pack("<f", 0.002))
        self.refused("unsupported", small, "shard_4.weight_scale_2", "0.002", "0.001")

    def test_type_told_by_the_config_alone(self):
        """The header says what the rows are; a configuration that says something else belongs to another model."""
        for dtype, declared in [("BF16", "float8_e4m3fn"), ("F8_E4M3", "bfloat16"), ("U8", "float8_e4m3fn")]:
            small = checkpoints.micro_qwen(dtype)
            self.refused("mismatch", small, "ple_embedding_dtype", declared, dtype,
                         config=checkpoints.micro_config(ple_embedding_dtype=declared))
        small = checkpoints.micro_qwen("BF16")
        small.shards[0][MICRO_TABLE + ".weight_scale"] = Tensor("BF16", [1], struct.pack("<H", 0x3951))
        self.refused("mismatch", small, ".weight_scale", "bf16")
        small = checkpoints.micro_qwen("F8_E4M3")
        self.refused("unsupported", small, "nf4", config=checkpoints.micro_config(ple_embedding_dtype="nf4"))

    def test_parts_of_another_form(self):
        for dtype, part in [("BF16", ".shard_0.weight_scale"), ("BF16", ".weight_scale_inv"), ("BF16", ".shard_1.biases"),
                            ("F8_E4M3", ".shard_0.weight_scale"), ("F8_E4M3", ".weight_scale_inv"), ("U8", ".weight_scale")]:
            small = checkpoints.micro_qwen(dtype)
            small.shards[3][MICRO_TABLE + part] = Tensor("BF16", [1], struct.pack("<H", 0x3951))
            self.refused("mismatch", small, MICRO_TABLE + part)

    def test_a_table_that_is_there_twice(self):
        small = checkpoints.micro_qwen("BF16")
        small.shards[0][MICRO_TABLE + ".weight"] = Tensor("BF16", [MICRO_ROWS, 32])
        self.refused("malformed", small, MICRO_TABLE + ".weight", "shards beside it")
        for small, name in [(checkpoints.micro_qwen("BF16"), MICRO_TABLE + ".shard_0.weight"),
                            (checkpoints.tiny_deepseek(), "layers.1.engram.embed.weight"),
                            (checkpoints.toy_longcat(), "model.ngram_embeddings.embedders.0.weight"),
                            (checkpoints.small_gemma(), "model.language_model.embed_tokens_per_layer.weight")]:
            other = "language_model.model." + name.removeprefix("model.").removeprefix("language_model.")
            tensor = next(shard[name] for shard in small.shards if name in shard)
            small.shards[0][other] = Tensor(tensor.dtype, tensor.shape)
            self.refused("malformed", small, "a second time")

    def test_tables_of_layers_that_the_config_leaves_out(self):
        small = checkpoints.micro_qwen("BF16")
        small.shards[0][MICRO_TABLE.replace(".1.", ".3.") + ".shard_0.weight"] = Tensor("BF16", [4, 32])
        self.refused("mismatch", small, "layers.3.", "belongs to another")
        small = checkpoints.small_gemma()
        del small.config["text_config"]["hidden_size_per_layer_input"]
        self.refused("mismatch", small, "tells of no table", "embed_tokens_per_layer")

    def test_defaults_of_the_language_model_stand_below_no_key_of_the_top_level(self):
        small = checkpoints.micro_qwen("BF16")
        folder = self.written(small)
        addressed = self.json("address", folder, "--tokens", "3 4 1 6 7")["tables"]
        for key, value in [("seed", 42), ("ngram_size", 2), ("make_ngram_vocab_size_divisible_by", 7)]:
            small.config = checkpoints.micro_config() | {key: value}
            self.written(small)
            self.assertEqual(self.json("address", folder, "--tokens", "3 4 1 6 7")["tables"], addressed, key)
        small.config["eos_token_id"] = small.config["text_config"].pop("eos_token_id")
        self.refused("malformed", small, "text_config.eos_token_id is missing")

    def test_a_shard_of_the_table_is_missing(self):
        for shard in [4, 2]:
            small = checkpoints.micro_qwen("BF16")
            del small.shards[shard][f"{MICRO_TABLE}.shard_{shard}.weight"]
            self.refused("mismatch", small, f"shard_{shard - 1}.weight", "420 rows")
        small = checkpoints.micro_qwen("BF16")
        del small.shards[0][f"{MICRO_TABLE}.shard_0.weight"]
        self.refused("malformed", small, "shard_0.weight", "missing")

    def test_constants_that_are_not_the_derived_ones(self):
        for name, index in [("layer_multipliers", 2), ("ngram_heads_vocab_sizes", 3), ("ngram_heads_offsets", 1)]:
            small = checkpoints.micro_qwen("BF16")
            tensor = small.shards[-1][checkpoints.QWEN_PLE + name]
            values = list(struct.unpack(f"<{tensor.shape[0]}q", tensor.content))
            values[index] += 2
            small.shards[-1][checkpoints.QWEN_PLE + name] = checkpoints.numbers(values)
            self.refused("mismatch", small, name, f"[{index}] is {values[index]}, but {values[index] - 2} follows")

    def test_rows_that_the_config_does_not_give(self):
        small = checkpoints.tiny_deepseek()
        small.config["text_config"]["engram_num_embeddings"][1] += 1
        self.refused("mismatch", small, "engram_num_embeddings", "layer 3")
        small = checkpoints.tiny_deepseek()
        name = "layers.3.engram.embed.scale"
        count = small.shards[1][name].shape[0] - 1
        small.shards[1][name] = Tensor("F8_E8M0", [count, 2])
        self.refused("mismatch", small, name, f"has {count} rows")
        small = checkpoints.toy_longcat()
        small.shards[0]["model.ngram_embeddings.embedders.3.weight"] = Tensor("BF16", [26, 6])
        self.refused("mismatch", small, "embedders.3.weight", "26", "27")

    def test_wrong_vocabulary_compression(self):
        small = checkpoints.tiny_deepseek()
        folder = self.written(small)
        token_map = self.file("map.i32le", struct.pack("<499i", *range(499)))
        self.fail_with(REFUSED, "mismatch", "address", folder, "--tokens", "1", "--token-map", token_map,
                       words=["499", "500"])
        self.fail_with(REFUSED, "not_found", "address", folder, "--tokens", "1", words=["tokenizer.json", "--token-map"])
        self.assertEqual(self.json("inspect", folder)["tables"][0]["rows_per_token"], 0)  # rows by id are served

    def test_its_own_tokenizer_compresses(self):
        """Five tokens that are four once compressed: "a" and "A" read the same."""
        tokenizer = {"model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "\u0120": 2, "A": 3}, "merges": []},
                     "decoder": {"type": "ByteLevel"}, "added_tokens": [{"id": 4, "content": "<end>"}]}
        sizes = checkpoints.primes_from(50, 48)
        config = {"model_type": "deepseek_v41", "image_token_id": 4, "text_config": {
            "engram_layer_ids": [1, 3], "engram_max_ngram_size": 4, "engram_vocab_size": 50, "engram_n_heads": 8,
            "engram_pad_token_id": 2, "engram_compressed_vocab_size": 4}}
        shards = [{f"layers.{layer}.engram.embed.weight": Tensor("F8_E4M3", [sum(primes), 32]),
                   f"layers.{layer}.engram.embed.scale": Tensor("F8_E8M0", [sum(primes), 1])}
                  for layer, primes in [(1, sizes[:24]), (3, sizes[24:])]]
        folder = checkpoints.write_checkpoint(self.folder / "model", config, shards, json.dumps(tokenizer).encode())
        addressed = [self.json("address", folder, "--tokens", "0 1 3 2 4 1", *more)["tables"]
                     for more in [[], ["--token-map", folder / "tokenizer.json"]]]
        self.assertEqual(*addressed)
        compressed = self.json("address", folder, "--tokens=0 1 0 2 -1 1", "--token-map", "identity")["tables"]
        self.assertEqual(addressed[0], compressed)
        self.assertNotEqual(compressed, self.json("address", folder, "--tokens=0 1 3 2 -1 1", "--token-map", "identity")["tables"])
        config["text_config"]["engram_compressed_vocab_size"] = 5
        checkpoints.write_checkpoint(self.folder / "model", config, shards, json.dumps(tokenizer).encode())
        self.fail_with(REFUSED, "mismatch", "inspect", folder, words=["config.json", "4", "5"])

    def test_unknown_families(self):
        small = checkpoints.tiny_deepseek()
        small.config = small.config | {"model_type": "deepseek_v42", "architectures": ["DeepseekV42ForCausalLM"]}
        self.refused("unsupported", small, "'deepseek_v42'", "'deepseek_v41'")

    def test_config_that_leaves_the_table_out(self):
        small = checkpoints.micro_qwen("BF16")
        self.refused("mismatch", small, "config.json", "tells of no table", MICRO_TABLE,
                     config={"model_type": "qwen4_exp", "text_config": {}})
        folder = self.written(checkpoints.micro_qwen("BF16", shards=1))
        (folder / "config.json").unlink()
        self.fail_with(REFUSED, "not_found", "inspect", folder, words=[MICRO_TABLE, "config.json"])

    def test_other_engines_forms(self):
        for suffix, dtype, words in [(".trellis", "I32", ["EXL3"]), (".shard_0.weight", "U32", ["MLX"])]:
            small = checkpoints.micro_qwen("BF16", shards=1)
            small.shards = [{MICRO_TABLE + suffix: Tensor(dtype, [MICRO_ROWS, 4])}]
            self.refused("unsupported", small, MICRO_TABLE + suffix, *words)

    def test_a_plain_model_has_no_table(self):
        folder = checkpoints.write_checkpoint(self.folder / "plain", {"model_type": "llama"},
                                              [{"model.embed_tokens.weight": Tensor("BF16", [4, 4])}])
        self.assertEqual(self.json("inspect", folder)["tables"], [])
        for config in [{"model_type": "gemma4_assistant", "text_config": {"hidden_size_per_layer_input": 0}},
                       {"model_type": "qwen9", "ple_layer_ids": []},
                       {"model_type": "deepseek_v41", "text_config": {"engram_layer_ids": []}}]:
            (folder / "config.json").write_text(json.dumps(config))
            self.assertEqual(self.json("inspect", folder)["tables"], [], config)


class PublishedSizes(Safetensors):
    """Headers of the published sizes over sparse files: opening reads headers, in megabytes of memory."""

    def under(self, memory_bytes, *arguments):
        """What the program says with an address space of so many bytes; of any size where a sanitizer needs it."""
        limit = None if SANITIZED else lambda: resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
        ended = Ended(subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, preexec_fn=limit))
        self.assertEqual(ended.code, DONE, ended.messages)
        return json.loads(ended.output)

    def test_qwen_nvfp4(self):
        folder = checkpoints.write_checkpoint(self.folder / "qwen", checkpoints.QWEN_CONFIG, checkpoints.qwen_nvfp4_shards())
        document = self.under(256 << 20, "inspect", folder, "--json")
        table = document["tables"][0]
        self.assertEqual((table["rows"], table["row_bytes"], table["row_format"], table["bytes"], len(table["extents"])),
                         (320_001_536, 160, "fp8", 51_200_245_760, 128))
        self.assertEqual(table["bytes_per_token"], 2560)
        self.assertAlmostEqual(document["bytes_total"] / 132.7e9, 1, places=2)
        last = self.under(1 << 30, "rows", folder, "--ids", "0,2500011,2500012,320001535", "--json")
        self.assertEqual([row["raw"] for row in last["rows"]], ["00" * 160] * 4)

    def test_deepseek(self):
        folder = checkpoints.write_checkpoint(self.folder / "deepseek", checkpoints.DEEPSEEK_CONFIG,
                                              checkpoints.deepseek_shards())
        (folder / "map").write_bytes((GOLDEN / "deepseek_v41_token_map.i32le").read_bytes())
        document = self.under(256 << 20, "inspect", folder, "--json")
        self.assertEqual([(table["layer"], table["rows"], table["row_bytes"]) for table in document["tables"]],
                         [(1, 384_006_168, 264), (14, 384_016_682, 264)])
        self.assertEqual(document["bytes_table"], 202_758_032_400)
        self.assertAlmostEqual(document["bytes_total"] / 510.3e9, 1, places=2)
        addressed = self.json("address", folder, "--tokens", "0 3", "--token-map", folder / "map")
        self.assertEqual(addressed["tables"][1]["rows"][0][:3], [14361964, 29977809, 32716444])


if __name__ == "__main__":
    unittest.main()
