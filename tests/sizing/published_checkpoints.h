// Checkpoints of published sizes as sparse files, every tensor under its name, with its type and shape.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/large_checkpoint.h"

namespace rowtide::sizing {

inline std::string int64s(const std::vector<std::int64_t>& values) {
  std::string bytes(values.size() * sizeof(std::int64_t), '\0');
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

inline constexpr const char* kQwenConfig = R"({
  "architectures": ["Qwen4ExpForConditionalGeneration"], "model_type": "qwen4_exp", "image_token_id": 248056,
  "text_config": {
    "model_type": "qwen4_exp_text", "vocab_size": 248320, "eos_token_id": 248044, "hidden_size": 2560,
    "num_hidden_layers": 48, "full_attention_interval": 4, "max_position_embeddings": 262144,
    "num_attention_heads": 24, "num_key_value_heads": 2, "head_dim": 256, "linear_num_key_heads": 16,
    "linear_num_value_heads": 48, "linear_key_head_dim": 128, "linear_value_head_dim": 128,
    "linear_conv_kernel_dim": 4, "indexer_kv_heads": 1, "indexer_n_heads": 4, "indexer_head_dim": 128,
    "indexer_budget": 2048, "indexer_compress_ratio": 4, "num_experts": 512, "num_experts_per_tok": 10,
    "moe_intermediate_size": 640, "hc_count": 4, "mtp_num_hidden_layers": 1, "ple_layer_ids": [2],
    "ple_embed_dim": 2560, "ngram_size": 3, "heads_per_ngram": 8, "ngram_vocab_size_base": 20000000,
    "make_ngram_vocab_size_divisible_by": 128, "split_ngram_parts": 128, "ple_conv_kernel_size": 4}})";

/// nvidia/Qwen3.8-Flash-Next-NVFP4: 132.7 GB.
class QwenWriter {
 public:
  explicit QwenWriter(const std::string& folder) : folder_(folder), writer_(folder, kShards) {}

  rowtide::LargeCheckpoint write() {
    table();
    for (int layer = 0; layer < 48; ++layer) decoder_layer(layer);
    const std::string model = "model.language_model.";
    bf16(0, model + "embed_tokens.weight", {248320, 2560});
    bf16(0, "lm_head.weight", {248320, 2560});
    mixer(0, model + "hyper_connection_mixer.");
    draft();
    vision();
    std::ofstream(folder_ + "config.json") << kQwenConfig;
    return writer_.write();
  }

 private:
  static constexpr int kShards = 28;

  void bf16(int shard, const std::string& name, std::vector<std::uint64_t> shape) {
    writer_.add(shard, name, "BF16", std::move(shape), 2);
  }

  void table() {
    const std::string ple = "model.language_model.layers.1.ple.";
    std::vector<std::int64_t> sizes, offsets;
    std::int64_t at = 0;
    for (const std::int64_t above : {3, 23, 33, 47, 59, 63, 69, 77, 81, 93, 107, 147, 153, 159, 161, 171}) {
      sizes.push_back(20'000'000 + above);
      offsets.push_back(at);
      at += sizes.back();
    }
    const std::string embedding = ple + "ple_embedding.";
    writer_.add_bytes(1, embedding + "layer_multipliers", "I64", {3},
                      int64s({23703573157769, 20109073645365, 8052911324071}));
    writer_.add_bytes(1, embedding + "ngram_heads_vocab_sizes", "I64", {16}, int64s(sizes));
    writer_.add_bytes(1, embedding + "ngram_heads_offsets", "I64", {16}, int64s(offsets));
    writer_.add_bytes(1, embedding + "ngram_embedding.weight_scale", "BF16", {1}, std::string_view("\x51\x39", 2));
    for (int part = 0; part < 128; ++part) {
      const std::string name = embedding + "ngram_embedding.shard_" + std::to_string(part) + ".weight";
      writer_.add(part % kShards, name, "F8_E4M3", {2'500'012, 160}, 1);
    }
    bf16(1, ple + "key_proj.weight", {10240, 2560});
    bf16(1, ple + "value_proj.weight", {2560, 2560});
    for (const char* norm : {"norm_key", "norm_query", "norm_conv"}) bf16(1, ple + norm + ".weight", {10240});
    bf16(1, ple + "conv1d.weight", {10240, 1, 4});
  }

  void mixer(int shard, const std::string& name) {
    bf16(shard, name + "hc_norm.weight", {10240});
    bf16(shard, name + "input_mix_weight_down.weight", {320, 10240});
    bf16(shard, name + "input_mix_weight_up.weight", {10240, 320});
  }

  void attention(int shard, const std::string& name) {
    bf16(shard, name + "q_proj.weight", {12288, 2560});
    bf16(shard, name + "k_proj.weight", {512, 2560});
    bf16(shard, name + "v_proj.weight", {512, 2560});
    bf16(shard, name + "o_proj.weight", {2560, 6144});
    bf16(shard, name + "q_norm.weight", {256});
    bf16(shard, name + "k_norm.weight", {256});
    bf16(shard, name + "indexer.index_qk_proj.weight", {640, 2560});
    bf16(shard, name + "indexer.q_layernorm.weight", {128});
    bf16(shard, name + "indexer.k_layernorm.weight", {128});
  }

  void delta_net(int shard, const std::string& name) {
    bf16(shard, name + "in_proj_qkv.weight", {10240, 2560});
    bf16(shard, name + "in_proj_z.weight", {6144, 2560});
    bf16(shard, name + "in_proj_b.weight", {48, 2560});
    bf16(shard, name + "in_proj_a.weight", {48, 2560});
    bf16(shard, name + "out_proj.weight", {2560, 6144});
    bf16(shard, name + "conv1d.weight", {10240, 1, 4});
    bf16(shard, name + "A_log", {48});
    bf16(shard, name + "dt_bias", {48});
    bf16(shard, name + "norm.weight", {128});
  }

  /// All of a layer but its mixing of tokens and its routed experts.
  void layer_frame(int shard, const std::string& name) {
    for (const char* kind : {"attn", "mlp"}) {
      const std::string connection = name + kind + "_hyper_connection.";
      mixer(shard, connection);
      bf16(shard, connection + "block_inject_weight.weight", {4, 10240});
    }
    bf16(shard, name + "mlp.gate.weight", {512, 2560});
    for (const char* matrix : {"gate_proj", "up_proj", "down_proj"}) {
      bf16(shard, name + "mlp.shared_expert." + matrix + ".weight", {640, 2560});
    }
    bf16(shard, name + "mlp.shared_expert_gate.weight", {1, 2560});
  }

  void decoder_layer(int layer) {
    const int shard = layer * kShards / 48;
    const std::string name = "model.language_model.layers." + std::to_string(layer) + ".";
    layer_frame(shard, name);
    layer % 4 == 3 ? attention(shard, name + "self_attn.") : delta_net(shard, name + "linear_attn.");
    for (int expert = 0; expert < 512; ++expert) {
      for (const char* matrix : {"gate_proj", "up_proj", "down_proj"}) {
        const std::string stem = name + "mlp.experts." + std::to_string(expert) + "." + matrix;
        const bool is_down = std::string_view(matrix) == "down_proj";
        const std::uint64_t out = is_down ? 2560 : 640;
        const std::uint64_t into = is_down ? 640 : 2560;
        writer_.add(shard, stem + ".input_scale", "F32", {}, 4);
        writer_.add(shard, stem + ".weight", "U8", {out, into / 2}, 1);
        writer_.add(shard, stem + ".weight_scale", "F8_E4M3", {out, into / 16}, 1);
        writer_.add(shard, stem + ".weight_scale_2", "F32", {}, 4);
      }
    }
  }

  void draft() {
    const std::string name = "mtp.layers.0.";
    layer_frame(2, name);
    attention(2, name + "self_attn.");
    for (int expert = 0; expert < 512; ++expert) {
      for (const char* matrix : {"gate_proj", "up_proj", "down_proj"}) {
        const std::string stem = name + "mlp.experts." + std::to_string(expert) + "." + matrix;
        writer_.add(2, stem + ".weight", "F8_E4M3", {640, 2560}, 1);
        writer_.add(2, stem + ".weight_scale_inv", "BF16", {5, 20}, 2);
      }
    }
    bf16(2, "mtp.fc_embedding.weight", {2560, 2560});
    bf16(2, "mtp.fc_hidden.weight", {2560, 2560});
    bf16(2, "mtp.pre_fc_norm_embedding.weight", {2560});
    bf16(2, "mtp.pre_fc_norm_hidden.weight", {10240});
    mixer(2, "mtp.hyper_connection_mixer.");
  }

  void vision() {
    const std::string name = "model.visual.";
    for (int block = 0; block < 27; ++block) {
      const std::string in = name + "blocks." + std::to_string(block) + ".";
      bf16(3, in + "attn.qkv.weight", {3456, 1152});
      bf16(3, in + "attn.qkv.bias", {3456});
      bf16(3, in + "attn.proj.weight", {1152, 1152});
      bf16(3, in + "attn.proj.bias", {1152});
      bf16(3, in + "mlp.linear_fc1.weight", {4304, 1152});
      bf16(3, in + "mlp.linear_fc1.bias", {4304});
      bf16(3, in + "mlp.linear_fc2.weight", {1152, 4304});
      bf16(3, in + "mlp.linear_fc2.bias", {1152});
      for (const char* norm : {"norm1.weight", "norm1.bias", "norm2.weight", "norm2.bias"}) bf16(3, in + norm, {1152});
    }
    bf16(3, name + "patch_embed.proj.weight", {1152, 3, 2, 16, 16});
    bf16(3, name + "patch_embed.proj.bias", {1152});
    bf16(3, name + "pos_embed.weight", {2304, 1152});
    bf16(3, name + "merger.norm.weight", {1152});
    bf16(3, name + "merger.norm.bias", {1152});
    bf16(3, name + "merger.linear_fc1.weight", {4608, 4608});
    bf16(3, name + "merger.linear_fc1.bias", {4608});
    bf16(3, name + "merger.linear_fc2.weight", {2560, 4608});
    bf16(3, name + "merger.linear_fc2.bias", {2560});
  }

  const std::string folder_;
  rowtide::ShardedWriter writer_;
};

inline constexpr const char* kDeepseekConfig = R"({
  "architectures": ["DeepseekV41ForCausalLM"], "model_type": "deepseek_v41", "image_token_id": 129264,
  "text_config": {
    "vocab_size": 129280, "hidden_size": 5120, "num_hidden_layers": 40, "num_attention_heads": 64,
    "num_key_value_heads": 1, "head_dim": 512, "max_position_embeddings": 1048576, "sliding_window": 128,
    "compress_ratios": [0, 0, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
                        1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0],
    "kv_source_layer_ids": [2, 8, 14, 20], "index_head_dim": 128, "index_topk": 512, "n_routed_experts": 384,
    "num_experts_per_tok": 6, "moe_intermediate_size": 2304, "hc_mult": 4, "num_nextn_predict_layers": 3,
    "dspark_n_routed_experts": 128, "dspark_num_experts_per_tok": 3, "engram_layer_ids": [1, 14],
    "engram_num_embeddings": [384006168, 384016682], "engram_max_ngram_size": 4, "engram_vocab_size": 16000000,
    "engram_n_heads": 8, "engram_head_dim": 256, "engram_pad_token_id": 2, "engram_compressed_vocab_size": 99092}})";

/// deepseek-ai/DeepSeek-V4.1-Flash: 510.3 GB.
class DeepseekWriter {
 public:
  explicit DeepseekWriter(const std::string& folder) : folder_(folder), writer_(folder, kShards) {}

  rowtide::LargeCheckpoint write() {
    for (int layer = 0; layer < 40; ++layer) {
      decoder_layer(layer, "layers." + std::to_string(layer) + ".", 384);
      indexer(layer);
    }
    for (int layer = 0; layer < 3; ++layer) decoder_layer(40 + layer, "mtp." + std::to_string(layer) + ".", 128);
    fp8(43, "mtp.0.main_proj", 5120, 15360);
    bf16(43, "mtp.2.markov_head.embed.weight", {129280, 256});
    bf16(43, "mtp.2.markov_head.head.weight", {129280, 256});
    bf16(44, "embed.weight", {129280, 5120});
    bf16(44, "head.weight", {129280, 5120});
    table(46, "layers.1.engram.", 384'006'168);
    table(47, "layers.14.engram.", 384'016'682);
    vision();
    std::ofstream(folder_ + "config.json") << kDeepseekConfig;
    return writer_.write();
  }

 private:
  static constexpr int kShards = 48;

  void bf16(int shard, const std::string& name, std::vector<std::uint64_t> shape) {
    writer_.add(shard, name, "BF16", std::move(shape), 2);
  }
  void fp8(int shard, const std::string& stem, std::uint64_t out, std::uint64_t into) {
    writer_.add(shard, stem + ".weight", "F8_E4M3", {out, into}, 1);
    writer_.add(shard, stem + ".scale", "F8_E8M0", {out / 32, into / 32}, 1);
  }
  void fp4(int shard, const std::string& stem, std::uint64_t out, std::uint64_t into) {
    writer_.add(shard, stem + ".weight", "I8", {out, into / 2}, 1);
    writer_.add(shard, stem + ".scale", "F8_E8M0", {out, into / 32}, 1);
  }

  void decoder_layer(int shard, const std::string& name, int experts) {
    for (int expert = 0; expert < experts; ++expert) {
      const std::string stem = name + "ffn.experts." + std::to_string(expert) + ".";
      fp4(shard, stem + "w1", 2304, 5120);
      fp4(shard, stem + "w2", 5120, 2304);
      fp4(shard, stem + "w3", 2304, 5120);
    }
    fp8(shard, name + "ffn.shared_experts.w1", 2304, 5120);
    fp8(shard, name + "ffn.shared_experts.w2", 5120, 2304);
    fp8(shard, name + "ffn.shared_experts.w3", 2304, 5120);
    bf16(shard, name + "ffn.gate.weight", {static_cast<std::uint64_t>(experts), 5120});
    fp8(shard, name + "attn.wq_a", 1280, 5120);
    fp8(shard, name + "attn.wq_b", 32768, 1280);
    fp8(shard, name + "attn.wkv", 512, 5120);
    fp8(shard, name + "attn.wo_a", 8192, 4096);
    fp8(shard, name + "attn.wo_b", 5120, 8192);
    bf16(shard, name + "attn_norm.weight", {5120});
    bf16(shard, name + "ffn_norm.weight", {5120});
    writer_.add(shard, name + "hc_attn_fn", "F32", {24, 20480}, 4);
    writer_.add(shard, name + "hc_ffn_fn", "F32", {24, 20480}, 4);
  }

  void indexer(int layer) {
    const std::string name = "layers." + std::to_string(layer) + ".attn.";
    if (layer == 2 || layer == 8 || layer == 14 || layer == 20) {
      fp8(layer, name + "compressor.wkv", 512, 5120);
      fp8(layer, name + "indexer.wk", 128, 512);
    }
    if (layer == 2 || layer == 8 || layer == 14 || (layer >= 20 && layer % 4 == 0)) {
      fp8(layer, name + "indexer.wq_b", 4096, 1280);
      bf16(layer, name + "indexer.weights_proj.weight", {32, 5120});
    }
  }

  void table(int shard, const std::string& name, std::uint64_t rows) {
    writer_.add(shard, name + "embed.weight", "F8_E4M3", {rows, 256}, 1);
    writer_.add(shard, name + "embed.scale", "F8_E8M0", {rows, 8}, 1);
    fp8(shard, name + "wkv", 25600, 6144);
    bf16(shard, name + "q_weight", {4, 5120});
    bf16(shard, name + "k_weight", {4, 5120});
  }

  void vision() {
    for (int block = 0; block < 32; ++block) {
      const std::string name = "vision.blocks." + std::to_string(block) + ".";
      bf16(45, name + "attn.qkv.weight", {3072, 1024});
      bf16(45, name + "attn.proj.weight", {1024, 1024});
      for (const char* matrix : {"w1", "w2", "w3"}) bf16(45, name + "mlp." + matrix + ".weight", {2816, 1024});
    }
    bf16(45, "aligner.w0.weight", {5120, 9216});
    bf16(45, "aligner.w1.weight", {5120, 5120});
    bf16(45, "image_start", {5120});
  }

  const std::string folder_;
  rowtide::ShardedWriter writer_;
};

}  // namespace rowtide::sizing
