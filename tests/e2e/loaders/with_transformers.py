"""Rowtide against transformers' own model of qwen4_exp: row ids as its n-gram module asks its table for them, whole
and in chunks over its cache, and rows as its table gives them, in checkpoints that transformers wrote."""
import contextlib
import copy
import pathlib
import unittest.mock

import torch
import transformers
from transformers.cache_utils import DynamicCache
from transformers.integrations.finegrained_fp8 import FP8Embedding
from transformers.models.qwen4_exp import modeling_qwen4_exp as qwen

import rowtide

LOADER = f"transformers {transformers.__version__}"
MODEL = rowtide.SOURCE / "models" / "tidepool.gguf"
BEYOND = [-1, -2, -(2**31), -(2**63), 10**9, 2**31, 2**62, 2**63 - 1]

RELEASED = {  # Qwen3.8-Flash-Next: what its addressing depends on
    "vocab_size": 248320, "hidden_size": 2560, "num_hidden_layers": 48, "ple_layer_ids": [2], "ple_embed_dim": 2560,
    "ngram_size": 3, "heads_per_ngram": 8, "ngram_vocab_size_base": 20_000_000, "split_ngram_parts": 128,
    "eos_token_id": 248044}
SMALL = {
    "hidden_size": 64, "num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 1, "head_dim": 32,
    "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.25,
                        "mrope_section": [2, 1, 1], "mrope_interleaved": True},
    "linear_key_head_dim": 16, "linear_value_head_dim": 16, "linear_num_key_heads": 2, "linear_num_value_heads": 4,
    "moe_intermediate_size": 32, "shared_expert_intermediate_size": 32, "num_experts": 4, "num_experts_per_tok": 2,
    "hc_lowrank": 16, "indexer_n_heads": 2, "indexer_kv_heads": 1, "indexer_head_dim": 32, "indexer_budget": 64,
    "indexer_compress_ratio": 4, "output_gate_type": "sigmoid", "max_position_embeddings": 4096}
TIDEPOOL = {**SMALL, "vocab_size": 4096, "ple_layer_ids": [2], "ple_embed_dim": 512, "ngram_vocab_size_base": 43000,
            "split_ngram_parts": 8, "eos_token_id": 4093}
FAR = {  # configurations that no released model has
    "bigrams alone, 3 heads": {"ngram_size": 2, "heads_per_ngram": 3, "ngram_vocab_size_base": 100, "seed": 7,
                               "ple_embed_dim": 12, "split_ngram_parts": 3},
    "4-grams, 5 heads": {"ngram_size": 4, "heads_per_ngram": 5, "ple_embed_dim": 60, "seed": 2**40 + 1},
    "several ends, of which the first counts": {"eos_token_id": [9, 5]},
    "two tables": {"ple_layer_ids": [3, 1], "make_ngram_vocab_size_divisible_by": 1},
}
FAR = {name: {**SMALL, "vocab_size": 512, "ple_layer_ids": [2], "ple_embed_dim": 128, "ngram_vocab_size_base": 2048,
              "split_ngram_parts": 4, "eos_token_id": 5, **changes} for name, changes in FAR.items()}


class Asked(Exception):
    """Stops a module where it asks its table for rows."""


def text_config(keys):
    return qwen.Qwen4ExpTextConfig(**copy.deepcopy(keys))


def ends_of(keys):
    ends = keys["eos_token_id"]
    return [ends[0]] * 4 + ends if isinstance(ends, list) else [ends]


class Hash:
    """The n-gram modules of a configuration without their tables, which would take up to 100 GB: these are on torch's
    meta device, which holds shapes alone. ids() is what the modules ask them for."""

    def __init__(self, keys):
        self.config = text_config(keys)
        on_meta = lambda rows, width: meta_embedding(rows, width, device="meta")
        meta_embedding = torch.nn.Embedding
        with unittest.mock.patch.object(qwen.nn, "Embedding", on_meta):
            self.modules = [qwen.Qwen4ExpTextNGramEmbedding(self.config, self.config.ple_embed_dim, layer - 1, index)
                            for index, layer in enumerate(self.config.ple_layer_ids)]
        for module in self.modules:
            module.ngram_embedding.register_forward_pre_hook(self.stop)

    def stop(self, _, arguments):
        self.asked = arguments[0]
        raise Asked

    def ids(self, tokens, cache=None):
        """[table, token, row]"""
        found = []
        for module in self.modules:
            with contextlib.suppress(Asked):
                module(torch.tensor([tokens]), cache)
            found.append(self.asked[0])
        return torch.stack(found).numpy()

    def chunks(self, chunks):
        cache = DynamicCache(config=self.config)
        return [self.ids(chunk, cache) for chunk in chunks]


def compare_hash(account, name, keys, sources, sequences=4, length=400):
    """Row ids of random sequences, with ids outside the vocabulary, for each of Rowtide's sources of the addressing."""
    loader, generator = Hash(keys), rowtide.random_of(name)
    for round_ in range(sequences):
        tokens = rowtide.sequence(generator, length, keys["vocab_size"], ends_of(keys), BEYOND if round_ % 2 else ())
        chunks = rowtide.cut(generator, tokens)
        whole, parts = loader.ids(tokens), loader.chunks(chunks)
        for source in sources:
            account.same_sequence(LOADER, f"{name}: sequences", source, tokens, whole)
            account.same_chunks(LOADER, f"{name}: chunks over its cache", source, chunks, parts)


class Asks:
    """What a whole model asks its tables for, and what they answer."""

    def __init__(self, model):
        self.tables = [module for module in model.modules() if isinstance(module, qwen.Qwen4ExpTextNGramEmbedding)]
        self.model, self.seen = model, []
        for table in self.tables:
            table.ngram_embedding.register_forward_hook(self.note)

    def note(self, _, arguments, answer):
        self.seen.append((arguments[0][0], answer[0]))

    @torch.no_grad()
    def run(self, chunks):
        """For each chunk the ids [table, token, row] and values [table, token, row, value] that were read."""
        cache, results = None, []
        for chunk in chunks:
            self.seen = []
            cache = self.model(input_ids=torch.tensor([chunk]), cache=cache, use_cache=True).cache
            results.append([torch.stack(part) for part in zip(*self.seen, strict=True)])
        return results

    def rows(self, table, ids):
        self.seen = []
        with torch.no_grad():
            return self.tables[table].ngram_embedding(torch.tensor(ids))


def bits(values):
    """The values' bits, without payload and sign of those that are no numbers."""
    integer = {torch.bfloat16: torch.uint16, torch.float32: torch.uint32}[values.dtype]
    return torch.where(values.isnan(), torch.full_like(values, float("nan")), values).view(integer).numpy()


def compare_rows(account, name, path, asks, kind, ids_of):
    document = rowtide.rowtide("inspect", path)
    for index, table in enumerate(document["tables"]):
        ids = ids_of(table["rows"])
        account.same(LOADER, f"{name}: rows as {kind}", bits(asks.rows(index, ids)),
                     rowtide.rows(path, ids, kind, table["name"]), "rows")


def load(folder, dtype):
    config = transformers.AutoConfig.from_pretrained(folder)
    kind = qwen.Qwen4ExpForCausalLM
    if config.model_type == "qwen4_exp":  # the vision tower, of which these files have nothing, costs seconds
        kind, config.vision_config.depth = qwen.Qwen4ExpForConditionalGeneration, 0
    model, info = kind.from_pretrained(folder, config=config, dtype=dtype, output_loading_info=True)
    missing = [key for key in info["missing_keys"] if ".visual." not in key]
    if missing or info["unexpected_keys"] or info["mismatched_keys"]:
        raise rowtide.Difference(f"{folder}: transformers loads it with {missing} missing and {info}")
    return Asks(model.eval())


def compare_checkpoint(account, name, folder, sources, rows_compared=None):
    """A checkpoint as transformers loads it: row ids that the whole model asks for, with its cache, and rows."""
    generator = rowtide.random_of(name)
    sample = lambda count: (range(count) if rows_compared is None else
                            sorted(generator.sample(range(count), rows_compared)) + [0, count - 1])
    for kind, dtype in (("bf16", torch.bfloat16), ("f32", torch.float32)):
        asks = load(folder, dtype)
        config = asks.model.config.get_text_config()
        tokens = rowtide.sequence(generator, 120, config.vocab_size, ends_of(config.to_dict()))
        chunks = rowtide.cut(generator, tokens)
        for what, parts in (("the whole model", [tokens]), ("the whole model in chunks", chunks)):
            read = asks.run(parts)
            for source in sources:
                account.same_chunks(LOADER, f"{name}: {what}", source, parts, [ids.numpy() for ids, _ in read])
        compare_rows(account, name, folder, asks, kind, lambda count: list(sample(count)))


def make_checkpoint(folder, keys, fp8):
    """A model with random weights in bfloat16, its table in bfloat16 or FP8, written by transformers."""
    torch.manual_seed(1)
    model = qwen.Qwen4ExpForCausalLM(text_config(keys)).to(torch.bfloat16)
    for module in [m for m in model.modules() if isinstance(m, qwen.Qwen4ExpTextNGramEmbedding)]:
        count, width = module.ngram_embedding.weight.shape
        if fp8:
            table = FP8Embedding(count, width)
            codes = torch.randint(0, 256, (count, width), dtype=torch.uint8)
            codes[(codes & 0x7F) == 0x7F] = 0x7E  # no NaN
            table.weight.data = codes.view(torch.float8_e4m3fn)
            table.weight_scale.data = torch.tensor([0.00019931793], dtype=torch.bfloat16)
            module.ngram_embedding = table
        else:  # every pattern of bits but infinities and NaN
            pattern = torch.randint(-2**15, 2**15, (count, width), dtype=torch.int16)
            pattern[(pattern & 0x7F80) == 0x7F80] &= ~0x0080
            module.ngram_embedding.weight.data = pattern.view(torch.bfloat16)
    if fp8:
        model.config.quantization_config = {
            "quant_method": "fp8", "weight_block_size": [128, 128], "modules_to_convert": ["ngram_embedding"],
            "modules_to_not_convert": ["lm_head", "hyper_connection", "linear_attn", "self_attn", "mlp", "proj"]}
    model.save_pretrained(folder)


def make_config(folder, keys):
    """config.json as transformers writes it for the model with its vision part."""
    qwen.Qwen4ExpConfig(text_config=copy.deepcopy(keys)).save_pretrained(folder)
    return folder / "config.json"


def compare(account, scratch, tidepool):
    """All of it. `tidepool`: the folder of tidepool's safetensors form, or None."""
    released = make_config(scratch / "released", RELEASED)
    hashes = {"Qwen3.8-Flash-Next": (RELEASED, [["--family", "qwen_ple"], ["--config", released]]),
              "tidepool": (TIDEPOOL, [[MODEL], ["--config", make_config(scratch / "tidepool", TIDEPOOL)]])}
    for index, (name, keys) in enumerate(FAR.items()):
        hashes[name] = (keys, [["--config", make_config(scratch / f"far{index}", keys)]])
    for name, (keys, sources) in hashes.items():
        account.attempt(name, compare_hash, name, keys, sources)
    tiny = {"tiny": {**FAR["two tables"], "ple_layer_ids": [2]}, **FAR}
    for fp8 in (False, True):
        for index, (name, keys) in enumerate(tiny.items()):
            folder = pathlib.Path(scratch, f"{'fp8' if fp8 else 'bf16'}-{index}")
            make_checkpoint(folder, keys, fp8)
            named = f"{name}, {'FP8' if fp8 else 'BF16'} table"
            account.attempt(named, compare_checkpoint, named, folder, [[folder]])
    if tidepool:
        named = "tidepool's safetensors"
        account.attempt(named, compare_checkpoint, named, pathlib.Path(tidepool), [[tidepool], [MODEL]], 20_000)
