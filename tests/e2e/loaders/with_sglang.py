"""Rowtide against SGLang's own modules on the CPU: the Engram of DeepSeek-V4.1 (row ids over its request history, token
map, rows) and the n-gram embedding of qwen4_exp (row ids, rows). Of SGLang nothing is replaced. What a server would
hand to the modules is made here: the batch's positions and lengths, and that there is one process. Of LongCat SGLang
has only a CUDA kernel, which is not compared."""
import importlib.metadata
import json
import pathlib
import types

import numpy
import safetensors.torch
import tokenizers
import torch
import transformers
from sglang.srt.layers import engram
from sglang.srt.model_executor.forward_batch_info import ForwardMode
from sglang.srt.model_executor.forward_context import ForwardContext, forward_context
from sglang.srt.models import qwen4_exp
from sglang.srt.runtime_context import get_parallel

import rowtide

LOADER = f"sglang {importlib.metadata.version('sglang')}"
ONE_PROCESS = {"tp_size": 1, "tp_rank": 0, "tp_group": None}

RELEASED = {  # DeepSeek-V4.1-Flash
    "engram_layer_ids": [1, 14], "engram_num_embeddings": [384006168, 384016682], "engram_max_ngram_size": 4,
    "engram_vocab_size": 16_000_000, "engram_n_heads": 8, "engram_head_dim": 256, "engram_pad_token_id": 2,
    "engram_compressed_vocab_size": 99092}
SMALL = {"engram_layer_ids": [1, 3], "engram_num_embeddings": [3828, 7078], "engram_max_ngram_size": 4,
         "engram_vocab_size": 100, "engram_n_heads": 8, "engram_head_dim": 64, "engram_pad_token_id": 2,
         "engram_compressed_vocab_size": 500}
FAR = {  # configurations that no released model has
    "Engram of bigrams alone, 3 heads": {"engram_max_ngram_size": 2, "engram_n_heads": 3, "engram_layer_ids": [0],
                               "engram_pad_token_id": 77},
    "Engram of 6-grams, layers in no order": {"engram_max_ngram_size": 6, "engram_n_heads": 2,
                                              "engram_layer_ids": [30, 7, 11]},
}


def without_counts(keys):
    """Row counts follow from the other keys; a configuration need not say them."""
    return {key: value for key, value in keys.items() if key != "engram_num_embeddings"}


def model_config(folder, keys, **outer):
    """config.json of a DeepSeek model with these keys."""
    folder.mkdir(exist_ok=True)
    path = folder / "config.json"
    path.write_text(json.dumps({"architectures": ["DeepseekV41ForCausalLM"], "model_type": "deepseek_v41",
                                "text_config": keys, **outer}))
    return path


def plain_tokenizer(path, count):
    """A tokenizer of `count` tokens that the compression leaves apart, and one that it joins with token 0."""
    vocabulary = {word: i for i, word in enumerate([f"w{i}" for i in range(count)] + ["W0"])}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE(vocabulary, []))
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    tokenizer.save(str(path))
    return read_tokenizer(path)


def read_tokenizer(path):
    return transformers.PreTrainedTokenizerFast(tokenizer_file=str(path))


class Requests:
    """SGLang's hasher and a batch of requests in it."""

    def __init__(self, keys, tokenizer, image=None, requests=1):
        layout = engram.EngramLayout.from_config(types.SimpleNamespace(**{"engram_num_embeddings": [], **keys}))
        self.hasher = engram.EngramHasher(layout, tokenizer, keys["engram_pad_token_id"],
                                          keys["engram_compressed_vocab_size"])
        self.hasher.image_token_id = image
        self.hasher.init_history(requests, "cpu")
        self.lengths = [0] * requests

    def run(self, mode, chunks):
        """The chunks, one a request and none empty, in one batch; of each the row ids [table, token, row]."""
        lengths = torch.tensor([len(chunk) for chunk in chunks])
        positions = [self.lengths[i] + k for i, chunk in enumerate(chunks) for k in range(len(chunk))]
        batch = types.SimpleNamespace(
            forward_mode=mode, positions=torch.tensor(positions), req_pool_indices=torch.arange(len(chunks)),
            extend_seq_lens=lengths, extend_seq_lens_cpu=lengths.tolist(), engram_history=None, out_cache_loc=None,
            extend_start_loc=torch.cumsum(lengths, 0) - lengths,
            spec_info=types.SimpleNamespace(draft_token_num=len(chunks[0])))
        ids = self.hasher(torch.tensor([token for chunk in chunks for token in chunk]), batch)
        if mode is not ForwardMode.TARGET_VERIFY:
            self.lengths = [had + len(chunk) for had, chunk in zip(self.lengths, chunks, strict=True)]
        return [part.transpose(0, 1).numpy() for part in ids.split(lengths.tolist())]

    def verify(self, chunks, accepted):
        """Speculative decoding: row ids of all tokens of a step, of which the first `accepted` of a request stay."""
        ids = self.run(ForwardMode.TARGET_VERIFY, chunks)
        self.hasher.commit_after_verify(torch.tensor(chunks), torch.arange(len(chunks)), torch.tensor(accepted))
        self.lengths = [had + kept for had, kept in zip(self.lengths, accepted, strict=True)]
        return ids


def compare_engram(account, name, keys, tokenizer, sources):
    """Row ids of three requests at once: in chunks, token by token, and speculatively; and each sequence whole. Dead is
    the tokenizer's last token. `sources` has Rowtide's sources of the addressing, each with what a dead token is there:
    None if the same."""
    generator, image = rowtide.random_of(name), len(tokenizer) - 1
    loader = Requests(keys, tokenizer, image, requests=3)
    histories, sequences, found = [[None] * 3 for _ in sources], [[] for _ in range(3)], [[] for _ in range(3)]

    def told(chunk, dead):
        return chunk if dead is None else [dead if token >= image else token for token in chunk]

    def step(what, chunks, ids, accepted):
        for (source, dead), history in zip(sources, histories, strict=True):
            for i, (chunk, kept) in enumerate(zip(chunks, accepted, strict=True)):
                got, after = rowtide.address(source, told(chunk, dead), history[i])
                account.same(LOADER, f"{name}: {what}", ids[i], got, "ids")
                if kept != len(chunk):
                    after = rowtide.address(source, told(chunk[:kept], dead), history[i])[1]
                history[i] = after
        for i, kept in enumerate(accepted):
            sequences[i] += chunks[i][:kept]
            found[i].append(ids[i][:, :kept])

    def drawn(length):  # SGLang gives the patches of an image ids from a million on
        return rowtide.sequence(generator, length, image, (image, image, 10**6, 2 * 10**6, keys["engram_pad_token_id"]))

    for _ in range(6):
        chunks = [drawn(generator.choice([1, 2, 3, generator.randint(1, 200)])) for _ in range(3)]
        lengths = [len(chunk) for chunk in chunks]
        step("chunks over its history", chunks, loader.run(ForwardMode.EXTEND, chunks), lengths)
        chunks = [drawn(1) for _ in range(3)]
        step("decoding", chunks, loader.run(ForwardMode.DECODE, chunks), [1] * 3)
        chunks, accepted = [drawn(6) for _ in range(3)], [generator.randint(1, 6) for _ in range(3)]
        step("speculative decoding", chunks, loader.verify(chunks, accepted), accepted)
    for tokens, parts in zip(sequences, found, strict=True):
        whole = numpy.concatenate(parts, axis=1)
        for source, dead in sources:
            account.same_sequence(LOADER, f"{name}: sequences", source, told(tokens, dead), whole)


def strange_tokenizer(folder):
    """A byte-level tokenizer trained on English text, with added tokens that take each rule of the compression."""
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=3000, special_tokens=["<s>", "</s>", "<pad>"], show_progress=False,
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train([str(rowtide.SOURCE / "models" / "heldout.txt")], trainer)
    strange = [  # accents, ligatures, capitals, Hangul, numerals, lone marks, spaces of many kinds, ...
        "Caf\u00e9", "cafe", "CAFE\u0301", "\ufb01n", "fin", "\u00bd", "1\u20442", "\u0130stanbul", "\u1e9e", "\u00df",
        "\ud55c", "\u1112\u1161\u11ab", "\u2167", "viii", "\u2026", "...", "\u0301", "\u200b", "\u3000", "\u00a0",
        " \t\r\n ", "\u2003", "\u0e01\u0e33", "\u0915\u094d\u0937", "\u03a3\u03c2", "\u03c3\u03c3", "\U0001d400", "a",
        "\u212b", "\u00c5", "\u1680x", "\ue000", "\u001cx", "x\u0085", "\u20ddx", "\u017f", "\u0132", "\uff21\uff22",
        "<|image|>"]
    tokenizer.add_tokens([tokenizers.AddedToken(text, normalized=False) for text in strange])
    path = folder / "tokenizer.json"
    tokenizer.save(str(path))
    return path


def compare_token_map(account, name, folder, tokenizer_json):
    """Every token's row ids through the map that each makes of a tokenizer: another map gives other ids, since the
    ids of a bigram follow from those of both of its tokens."""
    tokenizer = read_tokenizer(tokenizer_json)
    compressed = engram.build_compressed_token_map(tokenizer)[1]
    keys = without_counts({**RELEASED, "engram_layer_ids": [1], "engram_max_ngram_size": 2, "engram_n_heads": 2,
                           "engram_compressed_vocab_size": compressed})
    source = ["--config", model_config(folder, keys), "--token-map", tokenizer_json]
    tokens = list(range(len(tokenizer)))
    ids = Requests(keys, tokenizer).run(ForwardMode.EXTEND, [tokens])[0]
    what = f"{name}: token map of {len(tokens):,} tokens, {compressed:,} compressed"
    account.same_sequence(LOADER, what, source, tokens, ids)


def bits(values):
    canonical = torch.where(values.isnan(), torch.full_like(values, float("nan")), values)
    return canonical.view(torch.uint16).numpy()


def compare_engram_rows(account, folder):
    """Every row of a small checkpoint: read by SGLang's loader of the table, decoded by its look-up."""
    model_config(folder, SMALL)
    generator = torch.Generator().manual_seed(1)
    layout = engram.EngramLayout.from_config(types.SimpleNamespace(**SMALL))
    tensors = {}
    for layer, count in zip(SMALL["engram_layer_ids"], SMALL["engram_num_embeddings"], strict=True):
        width = SMALL["engram_head_dim"]
        codes = torch.randint(0, 256, (count, width), dtype=torch.uint8, generator=generator)
        codes[(codes & 0x7F) == 0x7F] = 0x7E  # no NaN
        # From 2^-126 to 2^119, the largest that leaves 448 finite.
        scales = torch.randint(1, 247, (count, width // 32), dtype=torch.uint8, generator=generator)
        tensors[f"layers.{layer}.engram.embed.weight"] = codes.view(torch.float8_e4m3fn)
        tensors[f"layers.{layer}.engram.embed.scale"] = scales.view(torch.float8_e8m0fnu)
    safetensors.torch.save_file(tensors, folder / "model.safetensors")
    for index, layer in enumerate(SMALL["engram_layer_ids"]):
        count = SMALL["engram_num_embeddings"][index]
        table = engram.EngramEmbedding(count, SMALL["engram_head_dim"], layer, layout.column_bounds(index))
        name = f"layers.{layer}.engram.embed"
        for part, parameter in (("weight", table.weight), ("scale", table.scale)):
            parameter.weight_loader(parameter, tensors[f"{name}.{part}"])
        account.same(LOADER, "deepseek_engram: rows as bf16", bits(table(torch.arange(count))),
                     rowtide.rows(folder, list(range(count)), "bf16", name), "rows")


def compare_qwen(account, name, folder):
    """A checkpoint that transformers wrote, in SGLang's module: row ids of windows, and every row."""
    text = json.loads((folder / "config.json").read_text())
    files = safetensors.torch.load_file(folder / "model.safetensors")
    fp8 = any(tensor.dtype == torch.float8_e4m3fn for tensor in files.values())
    keys = types.SimpleNamespace(**text, ple_offload_embedding=False,
                                 ple_embedding_dtype="float8_e4m3fn" if fp8 else None)
    end, generator = text["eos_token_id"], rowtide.random_of(name)
    tokens = rowtide.sequence(generator, 400, text["vocab_size"], [end])
    padded = torch.tensor([end] * (text["ngram_size"] - 1) + tokens)
    windows = padded.unfold(0, text["ngram_size"], 1)
    pool = types.SimpleNamespace(req_to_token_pool=types.SimpleNamespace(ple_window_cache=None))
    found = []
    for index, layer in enumerate(text["ple_layer_ids"]):
        module = qwen4_exp.Qwen4ExpNGramEmbedding(keys, text["ple_embed_dim"], index)
        prefix = f"model.layers.{layer - 1}.ple.ple_embedding.ngram_embedding"
        shards = [files[f"{prefix}.shard_{k}.weight"] for k in range(text["split_ngram_parts"])]
        module.ngram_embedding.weight.weight_loader(module.ngram_embedding.weight, torch.cat(shards))
        if fp8:
            module.ngram_embedding.weight_scale.copy_(files[prefix + ".weight_scale"])
        with forward_context(ForwardContext(attn_backend=pool)):
            found.append(module._hash_contexts(windows).numpy())
        count = sum(len(shard) for shard in shards)
        rows = module._embed_ngram_ids(torch.arange(count), None, count)
        account.same(LOADER, f"{name}: rows as bf16", bits(rows),
                     rowtide.rows(folder, list(range(count)), "bf16", prefix), "rows")
    account.same_sequence(LOADER, f"{name}: windows of its hash", [folder], tokens, numpy.stack(found))


@torch.no_grad()
def compare(account, scratch, deepseek_tokenizer, qwen_checkpoints):
    """All of it. `deepseek_tokenizer`: tokenizer.json of DeepSeek-V3. `qwen_checkpoints`: by name, as transformers
    wrote them."""
    for index, (name, changes) in enumerate({"DeepSeek-V4.1-Flash": RELEASED, **FAR}.items()):
        keys = without_counts({**SMALL, **changes})
        folder, count = scratch / f"engram{index}", keys["engram_compressed_vocab_size"]
        config = model_config(folder, keys, image_token_id=count)
        tokenizer = plain_tokenizer(folder / "tokenizer.json", count)
        identity = ["--family", "deepseek_engram"] if changes is RELEASED else ["--config", config]
        sources = [([*identity, "--token-map", "identity"], -1), (["--config", config], None)]
        account.attempt(name, compare_engram, name, keys, tokenizer, sources)
    folder = scratch / "map"
    folder.mkdir()
    files = {"a strange tokenizer": strange_tokenizer(folder), "DeepSeek-V3's tokenizer": deepseek_tokenizer}
    for name, file in files.items():
        account.attempt(name, compare_token_map, name, folder, file)
    with get_parallel().override(**ONE_PROCESS):
        account.attempt("deepseek_engram rows", compare_engram_rows, scratch / "engram-rows")
        for name, checkpoint in qwen_checkpoints.items():
            account.attempt(name, compare_qwen, f"qwen4_exp, {name}", checkpoint)
