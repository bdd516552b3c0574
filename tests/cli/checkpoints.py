"""Safetensors checkpoints made for a test: small ones with bytes, and sparse ones of the published sizes and layouts.

    checkpoints.py deepseek|qwen-nvfp4 FOLDER    writes the published layout there, for a look by hand
    checkpoints.py deepseek-rows FOLDER          and one of 4 GB whose rows are random, to be read by `bench rows`
"""
import json
import math
import os
import pathlib
import random
import struct
import sys

BYTES = {"F8_E4M3": 1, "F8_E8M0": 1, "U8": 1, "BF16": 2, "F16": 2, "F32": 4, "U32": 4, "I32": 4, "I64": 8}
SHARD_BYTES = 5 * 10**9


RANDOM = object()  # bytes of no meaning, made as they are written


class Tensor:
    """`content` None: zeros that take no room on the disk. F4 pairs lie in U8, as the published files have them."""

    def __init__(self, dtype, shape, content=None):
        self.dtype, self.shape, self.content = dtype, list(shape), content
        self.bytes = BYTES[dtype] * math.prod(shape)
        assert content in (None, RANDOM) or len(content) == self.bytes, (dtype, shape)


def header(tensors, metadata=None):
    """The bytes of a file before its data, padded with spaces to 8 as the published writer does."""
    entries, at = {"__metadata__": metadata or {"format": "pt"}}, 0
    for name, tensor in tensors.items():
        entries[name] = {"dtype": tensor.dtype, "shape": tensor.shape, "data_offsets": [at, at + tensor.bytes]}
        at += tensor.bytes
    text = json.dumps(entries, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text


def write_file(path, tensors, metadata=None):
    with path.open("wb") as file:
        file.write(header(tensors, metadata))
        for tensor in tensors.values():
            if tensor.content is None:
                file.seek(tensor.bytes, 1)
            elif tensor.content is RANDOM:
                for at in range(0, tensor.bytes, 1 << 24):
                    file.write(os.urandom(min(1 << 24, tensor.bytes - at)))
            else:
                file.write(tensor.content)
        file.truncate(file.tell())


def write_checkpoint(folder, config, shards, tokenizer=None):
    """`shards`: one dictionary of tensors each. One shard is model.safetensors, several have an index."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config, indent=1))
    if tokenizer is not None:
        (folder / "tokenizer.json").write_bytes(tokenizer)
    if len(shards) == 1:
        write_file(folder / "model.safetensors", shards[0])
        return folder
    places = {}
    for number, tensors in enumerate(shards, 1):
        name = f"model-{number:05}-of-{len(shards):05}.safetensors"
        write_file(folder / name, tensors)
        places |= dict.fromkeys(tensors, name)
    total = sum(tensor.bytes for tensors in shards for tensor in tensors.values())
    index = {"metadata": {"total_size": total}, "weight_map": places}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    return folder


def cut(tensors, shard_bytes=SHARD_BYTES):
    """The tensors in their order, cut into shards of about so many bytes."""
    shards, room = [{}], shard_bytes
    for name, tensor in tensors.items():
        if tensor.bytes > room and shards[-1]:
            shards.append({})
            room = shard_bytes
        shards[-1][name] = tensor
        room -= tensor.bytes
    return shards


def numbers(values):
    return Tensor("I64", [len(values)], struct.pack(f"<{len(values)}q", *values))


# DeepSeek-V4.1-Flash: rows of 256 E4M3 codes and 8 E8M0 scales, in the last two of 48 shards. The tables' tensors and
# those of the experts are exact; of the others the large ones are there.
ENGRAM_ROWS = {1: 384_006_168, 14: 384_016_682}
DEEPSEEK_CONFIG = {
    "architectures": ["DeepseekV41ForCausalLM"],
    "model_type": "deepseek_v41",
    "image_token_id": 129264,
    "text_config": {
        "vocab_size": 129280, "hidden_size": 5120, "num_hidden_layers": 40, "engram_layer_ids": [1, 14],
        "engram_num_embeddings": list(ENGRAM_ROWS.values()), "engram_max_ngram_size": 4, "engram_vocab_size": 16000000,
        "engram_n_heads": 8, "engram_head_dim": 256, "engram_pad_token_id": 2, "engram_compressed_vocab_size": 99092,
        "num_attention_heads": 64, "num_key_value_heads": 1, "head_dim": 512, "max_position_embeddings": 1048576,
        "sliding_window": 128, "compress_ratios": [0] * 2 + [2] * 18 + [1] * 20 + [0] * 3,
        "kv_source_layer_ids": [2, 8, 14, 20], "index_head_dim": 128, "index_topk": 512, "n_routed_experts": 384,
        "num_experts_per_tok": 6, "moe_intermediate_size": 2304, "hc_mult": 4, "num_nextn_predict_layers": 3,
        "dspark_n_routed_experts": 128, "dspark_num_experts_per_tok": 3,
    },
    "quantization_config": {"quant_method": "fp8", "scale_fmt": "ue8m0", "weight_block_size": [32, 32]},
}
DEEPSEEK_DENSE = {"attn.wq_a": (1280, 5120), "attn.wq_b": (32768, 1280), "attn.wkv": (512, 5120),
                  "attn.wo_a": (8192, 4096), "attn.wo_b": (5120, 8192), "ffn.shared_experts.w1": (2304, 5120),
                  "ffn.shared_experts.w2": (5120, 2304), "ffn.shared_experts.w3": (2304, 5120)}


def fp8_blocks(stem, out, into):
    return {stem + ".weight": Tensor("F8_E4M3", [out, into]), stem + ".scale": Tensor("F8_E8M0", [out // 32, into // 32])}


def deepseek_layer(prefix, experts):
    tensors = {prefix + "ffn.gate.weight": Tensor("BF16", [experts, 5120]),
               prefix + "attn_norm.weight": Tensor("BF16", [5120])}
    for expert in range(experts):
        for part, (out, into) in {"w1": (2304, 5120), "w2": (5120, 2304), "w3": (2304, 5120)}.items():
            name = f"{prefix}ffn.experts.{expert}.{part}"
            tensors[name + ".weight"] = Tensor("U8", [out, into // 2])
            tensors[name + ".scale"] = Tensor("F8_E8M0", [out, into // 32])
    for name, (out, into) in DEEPSEEK_DENSE.items():
        tensors |= fp8_blocks(prefix + name, out, into)
    return tensors


def deepseek_shards():
    backbone = {"embed.weight": Tensor("BF16", [129280, 5120]), "head.weight": Tensor("BF16", [129280, 5120])}
    for layer in range(40):
        backbone |= deepseek_layer(f"layers.{layer}.", 384)
    for layer in range(3):
        backbone |= deepseek_layer(f"mtp.{layer}.", 128)
    backbone |= fp8_blocks("mtp.0.main_proj", 5120, 15360)
    backbone["vision.blocks.qkv.weight"] = Tensor("BF16", [32 * 12544, 1024])  # all of its blocks
    shards = cut(backbone, sum(t.bytes for t in backbone.values()) // 46 + 10**8)
    assert len(shards) == 46
    for layer, rows in ENGRAM_ROWS.items():
        prefix = f"layers.{layer}.engram."
        shards.append({
            prefix + "embed.weight": Tensor("F8_E4M3", [rows, 256]), prefix + "embed.scale": Tensor("F8_E8M0", [rows, 8]),
            **fp8_blocks(prefix + "wkv", 25600, 6144),
            prefix + "q_weight": Tensor("BF16", [4, 5120]), prefix + "k_weight": Tensor("BF16", [4, 5120])})
    return shards


def primes_from(base, count):
    found = []
    while len(found) < count:
        if all(base % factor for factor in range(2, math.isqrt(base) + 1)):
            found.append(base)
        base += 1
    return found


def write_deepseek_rows(folder):
    """One table of that form, of 16 million rows in 4.2 GB."""
    rows = sum(primes_from(660_000, 24))
    text = DEEPSEEK_CONFIG["text_config"] | {"engram_layer_ids": [1], "engram_num_embeddings": [rows],
                                             "engram_vocab_size": 660_000}
    name = "layers.1.engram.embed."
    write_checkpoint(folder, DEEPSEEK_CONFIG | {"text_config": text}, [{
        name + "weight": Tensor("F8_E4M3", [rows, 256], RANDOM), name + "scale": Tensor("F8_E8M0", [rows, 8], RANDOM)}])


# Qwen3.8-Flash-Next, the checkpoint with NVFP4 experts, each expert's tensors apart; its table is FP8 in 128 shards.
QWEN_CONFIG = {
    "architectures": ["Qwen4ExpForConditionalGeneration"],
    "model_type": "qwen4_exp",
    "image_token_id": 248056,
    "text_config": {
        "model_type": "qwen4_exp_text", "vocab_size": 248320, "eos_token_id": 248044, "bos_token_id": 248044,
        "hidden_size": 2560, "num_hidden_layers": 48, "ple_layer_ids": [2], "ple_embed_dim": 2560, "ngram_size": 3,
        "heads_per_ngram": 8, "ngram_vocab_size_base": 20000000, "make_ngram_vocab_size_divisible_by": 128,
        "split_ngram_parts": 128, "ple_conv_kernel_size": 4, "full_attention_interval": 4, "num_attention_heads": 24,
        "num_key_value_heads": 2, "head_dim": 256, "max_position_embeddings": 262144, "linear_num_key_heads": 16,
        "linear_num_value_heads": 48, "linear_key_head_dim": 128, "linear_value_head_dim": 128,
        "linear_conv_kernel_dim": 4, "indexer_kv_heads": 1, "indexer_n_heads": 4, "indexer_head_dim": 128,
        "indexer_budget": 2048, "indexer_compress_ratio": 4, "num_experts": 512, "num_experts_per_tok": 10,
        "moe_intermediate_size": 640, "hc_count": 4, "mtp_num_hidden_layers": 1,
    },
}
QWEN_PLE = "model.language_model.layers.1.ple.ple_embedding."
QWEN_MULTIPLIERS = [23703573157769, 20109073645365, 8052911324071]
QWEN_HEAD_SIZES = [20_000_000 + n for n in (3, 23, 33, 47, 59, 63, 69, 77, 81, 93, 107, 147, 153, 159, 161, 171)]


def qwen_constants(prefix=QWEN_PLE, multipliers=None, sizes=None):
    sizes = sizes or QWEN_HEAD_SIZES
    return {prefix + "layer_multipliers": numbers(multipliers or QWEN_MULTIPLIERS),
            prefix + "ngram_heads_vocab_sizes": numbers(sizes),
            prefix + "ngram_heads_offsets": numbers([sum(sizes[:head]) for head in range(len(sizes))])}


def qwen_matrices(prefix, shapes):
    return {f"{prefix}{name}.weight": Tensor("BF16", shape) for name, shape in shapes.items()}


def qwen_layer(prefix, is_sparse):
    """The large tensors of a layer, but for its routed experts."""
    tensors = qwen_matrices(prefix + "mlp.", {
        "gate": [512, 2560], "shared_expert.gate_proj": [640, 2560], "shared_expert.up_proj": [640, 2560],
        "shared_expert.down_proj": [2560, 640]})
    for kind in ("attn", "mlp"):
        tensors |= qwen_matrices(f"{prefix}{kind}_hyper_connection.", {
            "input_mix_weight_down": [320, 10240], "input_mix_weight_up": [10240, 320],
            "block_inject_weight": [4, 10240]})
    if is_sparse:
        return tensors | qwen_matrices(prefix + "self_attn.", {
            "q_proj": [12288, 2560], "k_proj": [512, 2560], "v_proj": [512, 2560], "o_proj": [2560, 6144],
            "indexer.index_qk_proj": [640, 2560]})
    return tensors | qwen_matrices(prefix + "linear_attn.", {
        "in_proj_qkv": [10240, 2560], "in_proj_z": [6144, 2560], "in_proj_b": [48, 2560], "in_proj_a": [48, 2560],
        "out_proj": [2560, 6144]})


QWEN_EXPERT = {"gate_proj": (640, 2560), "up_proj": (640, 2560), "down_proj": (2560, 640)}


def qwen_nvfp4_shards():
    layer_name = "model.language_model.layers."
    tensors = {"model.language_model.embed_tokens.weight": Tensor("BF16", [248320, 2560])}
    for layer in range(48):
        for expert in range(512):
            for part, (out, into) in QWEN_EXPERT.items():
                name = f"{layer_name}{layer}.mlp.experts.{expert}.{part}."
                tensors |= {name + "weight": Tensor("U8", [out, into // 2]),
                            name + "weight_scale": Tensor("F8_E4M3", [out, into // 16]),
                            name + "weight_scale_2": Tensor("F32", []), name + "input_scale": Tensor("F32", [])}
        tensors |= qwen_layer(f"{layer_name}{layer}.", layer % 4 == 3)
    tensors["lm_head.weight"] = Tensor("BF16", [248320, 2560])
    tensors |= qwen_layer("mtp.layers.0.", True)
    tensors |= qwen_matrices("mtp.", {"fc_embedding": [2560, 2560], "fc_hidden": [2560, 2560]})
    for expert in range(512):
        for part, (out, into) in QWEN_EXPERT.items():
            name = f"mtp.layers.0.mlp.experts.{expert}.{part}."
            tensors |= {name + "weight": Tensor("F8_E4M3", [out, into]),
                        name + "weight_scale_inv": Tensor("BF16", [out // 128, into // 128])}
    tensors["model.visual.blocks.weight"] = Tensor("BF16", [449_000, 1000])  # all of its blocks
    tensors |= qwen_matrices("model.language_model.layers.1.ple.", {"key_proj": [10240, 2560], "value_proj": [2560, 2560]})
    tensors |= qwen_constants()
    embedding = QWEN_PLE + "ngram_embedding."
    tensors[embedding + "weight_scale"] = Tensor("BF16", [1], struct.pack("<H", 0x3951))
    tensors |= {f"{embedding}shard_{k}.weight": Tensor("F8_E4M3", [2_500_012, 160]) for k in range(128)}
    return cut(tensors)


# Small models, all with random rows. Configurations are those of the golden vectors, named there as here.
class Small:
    """`config`, `shards` for write_checkpoint(); `rows[table name]`: the raw rows, as `rowtide rows` gives them."""

    def __init__(self, config, shards, rows):
        self.config, self.shards, self.rows = config, shards, rows

    def write(self, folder, **more):
        return write_checkpoint(folder, self.config, self.shards, **more)


def random_rows(seed, rows, row_bytes):
    source = random.Random(seed)
    return [source.randbytes(row_bytes) for _ in range(rows)]


def joined(rows, start=0, end=None):
    return b"".join(row[start:end] for row in rows)


MICRO_SIZES, MICRO_ROWS, MICRO_VALUES = [101, 103, 107, 109], 424, 32
MICRO_MULTIPLIERS = [256496738022509279, 251627398771002343, 55314113489879221]
MICRO_TABLE = QWEN_PLE + "ngram_embedding"


def micro_config(**text_config):
    return {"architectures": ["Qwen4ExpForConditionalGeneration"], "model_type": "qwen4_exp", "text_config": {
        "vocab_size": 32, "eos_token_id": 1, "num_hidden_layers": 4, "ple_layer_ids": [2],
        "ple_embed_dim": 4 * MICRO_VALUES, "ngram_size": 3, "heads_per_ngram": 2, "ngram_vocab_size_base": 101,
        "make_ngram_vocab_size_divisible_by": 8, "split_ngram_parts": 5} | text_config}


def micro_qwen(dtype, shards=5):
    """`dtype`: BF16, F8_E4M3, or U8 for NVFP4. The other tensors make every file and shard start at an odd place."""
    row_bytes = {"BF16": 64, "F8_E4M3": 32, "U8": 18}[dtype]
    rows = random_rows(dtype, MICRO_ROWS, row_bytes)
    size = -(-MICRO_ROWS // shards)
    files = []
    for shard in range(shards):
        name, here = f"{MICRO_TABLE}.shard_{shard}", rows[shard * size:(shard + 1) * size]
        tensors = {f"model.odd_{shard}": Tensor("U8", [37 * shard + 1])}
        if dtype == "U8":
            tensors |= {name + ".weight_scale": Tensor("F8_E4M3", [len(here), 2], joined(here, 16)),
                        name + ".weight": Tensor("U8", [len(here), 16], joined(here, 0, 16)),
                        name + ".weight_scale_2": Tensor("F32", [], struct.pack("<f", 0.001))}
        else:
            tensors[name + ".weight"] = Tensor(dtype, [len(here), MICRO_VALUES], joined(here))
        files.append(tensors)
    files[-1] |= qwen_constants(multipliers=MICRO_MULTIPLIERS, sizes=MICRO_SIZES)
    if dtype == "F8_E4M3":
        files[0][MICRO_TABLE + ".weight_scale"] = Tensor("BF16", [1], struct.pack("<H", 0x3951))
    return Small(micro_config(), files, {MICRO_TABLE: rows})


def tiny_deepseek():
    """Token ids are compressed ids: use it with the identity map."""
    rows = {1: 3828, 3: 7078}  # sums of the 24 primes that follow 100, and of the next 24
    config = {"architectures": ["DeepseekV41ForCausalLM"], "model_type": "deepseek_v41", "text_config": {
        "vocab_size": 500, "engram_layer_ids": [1, 3], "engram_num_embeddings": list(rows.values()),
        "engram_max_ngram_size": 4, "engram_vocab_size": 100, "engram_n_heads": 8, "engram_head_dim": 64,
        "engram_pad_id": 2, "engram_compressed_vocab_size": 500}}
    tables, files = {}, []
    for layer, count in rows.items():
        name = f"layers.{layer}.engram.embed"
        tables[name] = random_rows(name, count, 66)
        files.append({f"layers.{layer}.odd": Tensor("U8", [layer]),
                      name + ".scale": Tensor("F8_E8M0", [count, 2], joined(tables[name], 64)),
                      name + ".weight": Tensor("F8_E4M3", [count, 64], joined(tables[name], 0, 64))})
    return Small(config, files, tables)


def toy_longcat():
    sizes = [21, 23, 25, 27]
    config = {"architectures": ["LongcatFlashNgramForCausalLM"], "model_type": "longcat_flash_ngram", "vocab_size": 10,
              "eos_token_id": 2, "ngram_vocab_size_ratio": 2, "emb_neighbor_num": 3, "emb_split_num": 2}
    rows = random_rows("longcat", sum(sizes), 12)
    shard, at = {"model.odd": Tensor("U8", [3])}, 0
    for head, size in enumerate(sizes):
        shard[f"model.ngram_embeddings.embedders.{head}.weight"] = Tensor("BF16", [size, 6], joined(rows[at:at + size]))
        at += size
    return Small(config, [shard], {"model.ngram_embeddings": rows})


def small_gemma():
    name = "model.language_model.embed_tokens_per_layer"
    config = {"architectures": ["Gemma3nForConditionalGeneration"], "model_type": "gemma3n", "image_token_id": 30,
              "text_config": {"vocab_size_per_layer_input": 32, "hidden_size_per_layer_input": 8,
                              "num_hidden_layers": 3}}
    rows = random_rows("gemma", 32, 48)
    return Small(config, [{name + ".weight": Tensor("BF16", [32, 24], joined(rows))}], {name: rows})


# The model of models/, as safetensors: its table is FP8 there, all else BF16.
TIDEPOOL_CONFIG = {
    "architectures": ["Qwen4ExpForConditionalGeneration"], "model_type": "qwen4_exp",
    "text_config": {
        "model_type": "qwen4_exp_text", "vocab_size": 4096, "hidden_size": 512, "num_hidden_layers": 4,
        "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 64, "max_position_embeddings": 2048,
        "full_attention_interval": 4, "linear_conv_kernel_dim": 4, "linear_key_head_dim": 64,
        "linear_value_head_dim": 64, "linear_num_key_heads": 2, "linear_num_value_heads": 4, "num_experts": 8,
        "num_experts_per_tok": 2, "moe_intermediate_size": 96, "shared_expert_intermediate_size": 128, "hc_count": 4,
        "indexer_n_heads": 4, "indexer_kv_heads": 1, "indexer_head_dim": 64, "indexer_budget": 2048,
        "indexer_compress_ratio": 4, "ple_layer_ids": [2], "ple_embed_dim": 512, "ngram_size": 3, "heads_per_ngram": 8,
        "ngram_vocab_size_base": 43000, "make_ngram_vocab_size_divisible_by": 128, "split_ngram_parts": 8,
        "ple_conv_kernel_size": 4, "eos_token_id": 4093, "bos_token_id": 4093,
    },
}
TIDEPOOL_LAYER = {"mlp.experts.down_proj": [8, 512, 96], "mlp.experts.gate_up_proj": [8, 192, 512],
                  "mlp.gate.weight": [8, 512], "mlp.shared_expert.down_proj.weight": [512, 128],
                  "mlp.shared_expert.gate_proj.weight": [128, 512], "mlp.shared_expert.up_proj.weight": [128, 512],
                  "mlp.shared_expert_gate.weight": [1, 512]}
TIDEPOOL_MIX = {"block_inject_weight.weight": [4, 2048], "hc_norm.weight": [2048],
                "input_mix_weight_down.weight": [16, 2048], "input_mix_weight_up.weight": [2048, 16]}
TIDEPOOL_LINEAR = {"A_log": [4], "conv1d.weight": [512, 1, 4], "dt_bias": [4], "in_proj_a.weight": [4, 512],
                   "in_proj_b.weight": [4, 512], "in_proj_qkv.weight": [512, 512], "in_proj_z.weight": [256, 512],
                   "norm.weight": [64], "out_proj.weight": [512, 256]}
TIDEPOOL_FULL = {"indexer.index_qk_proj.weight": [320, 512], "indexer.k_layernorm.weight": [64],
                 "indexer.q_layernorm.weight": [64], "k_norm.weight": [64], "k_proj.weight": [128, 512],
                 "o_proj.weight": [512, 256], "q_norm.weight": [64], "q_proj.weight": [512, 512],
                 "v_proj.weight": [128, 512]}
TIDEPOOL_FUSION = {"conv1d.weight": [2048, 1, 4], "key_proj.weight": [2048, 512], "norm_conv.weight": [2048],
                   "norm_key.weight": [2048], "norm_query.weight": [2048], "value_proj.weight": [512, 512]}


def tidepool_tensors():
    """The published names and shapes, zeros but for what says how rows are addressed."""
    root = "model.language_model."
    shapes = {"lm_head.weight": [4096, 512], root + "embed_tokens.weight": [4096, 512]}

    def add(prefix, group):
        shapes.update({root + prefix + name: shape for name, shape in group.items()})

    add("hyper_connection_mixer.", {name: shape for name, shape in TIDEPOOL_MIX.items() if "inject" not in name})
    for layer in range(4):
        at = f"layers.{layer}."
        add(at, TIDEPOOL_LAYER)
        add(at + "attn_hyper_connection.", TIDEPOOL_MIX)
        add(at + "mlp_hyper_connection.", TIDEPOOL_MIX)
        add(at + ("self_attn." if layer == 3 else "linear_attn."), TIDEPOOL_FULL if layer == 3 else TIDEPOOL_LINEAR)
    add("layers.1.ple.", TIDEPOOL_FUSION)
    tensors = {name: Tensor("BF16", shape) for name, shape in shapes.items()}
    for shard in range(8):
        tensors[f"{QWEN_PLE}ngram_embedding.shard_{shard}.weight"] = Tensor("F8_E4M3", [86192, 32])
    tensors[QWEN_PLE + "ngram_embedding.weight_scale"] = Tensor("BF16", [1], struct.pack("<H", 0x3951))
    return tensors | qwen_constants(multipliers=[2043359076095531, 1677619451946387, 1270917961443223],
                                    sizes=primes_from(43000, 16))


def main(which, folder):
    folder = pathlib.Path(folder)
    if which == "deepseek":
        write_checkpoint(folder, DEEPSEEK_CONFIG, deepseek_shards())
    elif which == "qwen-nvfp4":
        write_checkpoint(folder, QWEN_CONFIG, qwen_nvfp4_shards())
    elif which == "deepseek-rows":
        write_deepseek_rows(folder)
    else:
        sys.exit(__doc__)
    files = list(folder.iterdir())
    print(f"{len(files)} files, {sum(f.stat().st_size for f in files):,} bytes in {folder}")


if __name__ == "__main__":
    main(*sys.argv[1:])
