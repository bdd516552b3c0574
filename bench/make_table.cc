// Writes a model with a full-size n-gram table on a tiny backbone: a qwen4exp GGUF file that llama.cpp loads, whose
// table has the released shape (160 values, 320,001,536 rows, IQ4_NL, 26.8 GiB) or, with --rows, a smaller one laid
// out the same way. Rows follow row_rule.h, the other weights are noise; the tokenizer is another model's, so that
// real text gives real token ids.
#include <CLI/CLI.hpp>
#include <cmath>
#include <string>
#include <utility>

#include "address/qwen_ple.h"
#include "base/error.h"
#include "gguf_writer.h"
#include "row_rule.h"

namespace rowtide::bench {
namespace {

constexpr std::uint32_t kVocab = 4096, kEndOfText = 4093;  // of the tokenizer that is taken over
constexpr std::uint32_t kLayers = 3, kPleLayer = 1;        // linear, linear with the table, full attention
constexpr std::uint32_t kHeadsPerOrder = 8, kNgram = 3, kHeads = kHeadsPerOrder * (kNgram - 1);
constexpr std::uint32_t kHidden = kHeads * kRowValues, kStreams = 4, kStreamed = kStreams * kHidden;
constexpr std::uint32_t kLowRank = 16, kConv = 4;
constexpr std::uint32_t kAttentionHeads = 4, kKvHeads = 2, kHeadWidth = 64, kIndexerHeads = 4;
constexpr std::uint32_t kDeltaKeyHeads = 2, kDeltaValueHeads = 4, kDeltaWidth = 64;
constexpr std::uint32_t kDeltaInner = kDeltaValueHeads * kDeltaWidth;
constexpr std::uint32_t kDeltaMixed = 2 * kDeltaKeyHeads * kDeltaWidth + kDeltaInner;
constexpr std::uint32_t kExpertWidth = 64, kExpertsUsed = 2, kExpertsMin = 8, kExpertsMax = 512;
constexpr std::uint64_t kExpertBytes = 3ull * kHidden * kExpertWidth / 32 * 34 * kLayers;  // one expert, all layers

std::uint64_t product(const std::vector<std::uint64_t>& dims) {
  std::uint64_t values = 1;
  for (const auto dim : dims) values *= dim;
  return values;
}

/// The start of a tensor's stream of noise.
std::uint64_t seed_of(std::string_view name) {
  std::uint64_t seed = 0;
  for (const char c : name) seed = splitmix64(seed ^ static_cast<unsigned char>(c));
  return seed;
}

/// A matrix in Q8_0 whose rows have about unit length.
Tensor matrix(std::string name, std::vector<std::uint64_t> dims) {
  struct Block {
    std::uint16_t scale;
    std::uint64_t codes[4];
  } __attribute__((packed));
  static_assert(sizeof(Block) == 34);
  // 73 is the deviation of a uniform byte; the scale is the power of two nearest to 1 / (73 sqrt(inputs)), as fp16.
  const int exponent = static_cast<int>(std::lround(-std::log2(73.0 * std::sqrt(static_cast<double>(dims[0])))));
  const auto scale = static_cast<std::uint16_t>(exponent >= -14 ? (exponent + 15) << 10 : 1 << (exponent + 24));
  const auto blocks = product(dims) / 32;
  auto fill = [seed = seed_of(name), scale](std::uint64_t first, std::uint64_t count, std::byte* out) {
    for (std::uint64_t i = first; i < first + count; ++i, out += sizeof(Block)) {
      Block block{.scale = scale, .codes = {}};
      for (std::uint64_t k = 0; k < 4; ++k) block.codes[k] = splitmix64(seed + 4 * i + k);
      std::memcpy(out, &block, sizeof block);
    }
  };
  return {std::move(name), GgmlType::kQ8_0, std::move(dims), sizeof(Block), blocks, std::move(fill)};
}

/// A vector or small matrix in F32: `centre` plus uniform noise of at most `spread`.
Tensor floats(std::string name, std::vector<std::uint64_t> dims, float centre, float spread) {
  const auto values = product(dims);
  auto fill = [seed = seed_of(name), centre, spread](std::uint64_t first, std::uint64_t count, std::byte* out) {
    for (std::uint64_t i = first; i < first + count; ++i, out += sizeof(float)) {
      const auto bits = static_cast<std::int32_t>(splitmix64(seed + i) >> 32);
      const float value = centre + spread * static_cast<float>(bits) / 2147483648.0f;
      std::memcpy(out, &value, sizeof value);
    }
  };
  return {std::move(name), GgmlType::kF32, std::move(dims), sizeof(float), values, std::move(fill)};
}

Tensor ones(std::string name, std::vector<std::uint64_t> dims) {
  return floats(std::move(name), std::move(dims), 1, 0);
}

Tensor table(std::uint64_t rows) {
  auto fill = [](std::uint64_t first, std::uint64_t count, std::byte* out) {
    for (std::uint64_t i = 0; i < count; ++i) fill_row(first + i, out + i * kRowBytes);
  };
  return {"per_layer_token_embd.weight", GgmlType::kIq4Nl, {kRowValues, rows}, kRowBytes, rows, fill};
}

void add_model_keys(GgufWriter& file, std::uint32_t experts) {
  const std::string arch = "qwen4exp.";
  file.key("general.architecture", "qwen4exp");
  file.key("general.name", "full-size table on a tiny backbone");
  file.key(arch + "block_count", kLayers);
  file.key(arch + "context_length", 8192u);
  file.key(arch + "embedding_length", kHidden);
  file.key(arch + "feed_forward_length", kExpertWidth);
  file.key(arch + "attention.head_count", kAttentionHeads);
  file.key(arch + "attention.head_count_kv", kKvHeads);
  file.key(arch + "attention.key_length", kHeadWidth);
  file.key(arch + "attention.value_length", kHeadWidth);
  file.key(arch + "attention.layer_norm_rms_epsilon", 1e-6f);
  file.key(arch + "attention.recurrent_layers", std::vector<bool>{true, true, false});
  file.key(arch + "attention.compress_ratios", std::vector<std::uint32_t>{0, 0, 4});
  file.key(arch + "attention.indexer.head_count", kIndexerHeads);
  file.key(arch + "attention.indexer.key_length", kHeadWidth);
  file.key(arch + "attention.indexer.top_k", 2048u);
  file.key(arch + "rope.freq_base", 10000.0f);
  file.key(arch + "rope.dimension_count", 32u);
  file.key(arch + "rope.dimension_sections", std::vector<std::int32_t>{6, 5, 5, 0});
  file.key(arch + "expert_count", experts);
  file.key(arch + "expert_used_count", kExpertsUsed);
  file.key(arch + "expert_feed_forward_length", kExpertWidth);
  file.key(arch + "expert_shared_feed_forward_length", kExpertWidth);
  file.key(arch + "ssm.conv_kernel", kConv);
  file.key(arch + "ssm.inner_size", kDeltaInner);
  file.key(arch + "ssm.state_size", kDeltaWidth);
  file.key(arch + "ssm.time_step_rank", kDeltaValueHeads);
  file.key(arch + "ssm.group_count", kDeltaKeyHeads);
  file.key(arch + "hyper_connection.count", kStreams);
  file.key(arch + "hyper_connection.low_rank", kLowRank);
}

void add_table_keys(GgufWriter& file, const QwenPleConstants& constants) {
  const std::string ple = "qwen4exp.ple.";
  file.key("qwen4exp.embedding_length_per_layer_input", static_cast<std::uint32_t>(kRowValues));
  file.key(ple + "layers", std::vector<std::uint32_t>{kPleLayer});
  file.key(ple + "ngram_size", kNgram);
  file.key(ple + "heads_per_ngram", kHeadsPerOrder);
  file.key(ple + "conv_kernel", kConv);
  file.key(ple + "eos_token_id", kEndOfText);
  file.key(ple + "layer_multipliers", constants.multipliers);
  file.key(ple + "head_offsets", constants.head_offsets);
  file.key(ple + "head_vocab_sizes", constants.head_sizes);
}

void add_mixer(GgufWriter& file, const std::string& prefix, bool injects) {
  file.tensor(ones(prefix + "norm.weight", {kStreamed}));
  file.tensor(matrix(prefix + "down.weight", {kStreamed, kLowRank}));
  file.tensor(floats(prefix + "up.weight", {kLowRank, kStreamed}, 0, 0.3f));
  if (injects) file.tensor(floats(prefix + "inject.weight", {kStreamed, kStreams}, 0, 0.01f));
}

void add_attention(GgufWriter& file, const std::string& block) {
  file.tensor(matrix(block + "attn_q.weight", {kHidden, 2 * kAttentionHeads * kHeadWidth}));
  file.tensor(matrix(block + "attn_k.weight", {kHidden, kKvHeads * kHeadWidth}));
  file.tensor(matrix(block + "attn_v.weight", {kHidden, kKvHeads * kHeadWidth}));
  file.tensor(matrix(block + "attn_output.weight", {kAttentionHeads * kHeadWidth, kHidden}));
  for (const char* norm : {"attn_q_norm", "attn_k_norm", "indexer.q_norm", "indexer.k_norm"}) {
    file.tensor(ones(block + norm + ".weight", {kHeadWidth}));
  }
  file.tensor(matrix(block + "indexer.q_proj.weight", {kHidden, kIndexerHeads * kHeadWidth}));
  file.tensor(matrix(block + "indexer.k_proj.weight", {kHidden, kHeadWidth}));
}

void add_delta_net(GgufWriter& file, const std::string& block) {
  file.tensor(matrix(block + "attn_qkv.weight", {kHidden, kDeltaMixed}));
  file.tensor(matrix(block + "attn_gate.weight", {kHidden, kDeltaInner}));
  file.tensor(floats(block + "ssm_conv1d.weight", {kConv, kDeltaMixed}, 0, 0.5f));
  file.tensor(floats(block + "ssm_dt.bias", {kDeltaValueHeads}, 0, 0.1f));
  file.tensor(floats(block + "ssm_a", {kDeltaValueHeads}, -1, 0.5f));
  file.tensor(floats(block + "ssm_beta.weight", {kHidden, kDeltaValueHeads}, 0, 0.03f));
  file.tensor(floats(block + "ssm_alpha.weight", {kHidden, kDeltaValueHeads}, 0, 0.03f));
  file.tensor(ones(block + "ssm_norm.weight", {kDeltaWidth}));
  file.tensor(matrix(block + "ssm_out.weight", {kDeltaInner, kHidden}));
}

void add_fusion(GgufWriter& file, const std::string& block) {
  file.tensor(matrix(block + "ple_key.weight", {kHidden, kStreamed}));
  file.tensor(matrix(block + "ple_value.weight", {kHidden, kHidden}));
  for (const char* norm : {"key", "query", "conv"})
    file.tensor(ones(block + "ple_norm_" + norm + ".weight", {kStreamed}));
  file.tensor(floats(block + "ple_conv1d.weight", {kConv, kStreamed}, 0, 0.5f));
}

void add_experts(GgufWriter& file, const std::string& block, std::uint32_t experts) {
  file.tensor(floats(block + "ffn_gate_inp.weight", {kHidden, experts}, 0, 0.03f));
  file.tensor(matrix(block + "ffn_gate_exps.weight", {kHidden, kExpertWidth, experts}));
  file.tensor(matrix(block + "ffn_up_exps.weight", {kHidden, kExpertWidth, experts}));
  file.tensor(matrix(block + "ffn_down_exps.weight", {kExpertWidth, kHidden, experts}));
  file.tensor(floats(block + "ffn_gate_inp_shexp.weight", {kHidden}, 0, 0.03f));
  file.tensor(matrix(block + "ffn_gate_shexp.weight", {kHidden, kExpertWidth}));
  file.tensor(matrix(block + "ffn_up_shexp.weight", {kHidden, kExpertWidth}));
  file.tensor(matrix(block + "ffn_down_shexp.weight", {kExpertWidth, kHidden}));
}

void add_tensors(GgufWriter& file, std::uint64_t rows, std::uint32_t experts) {
  file.tensor(matrix("token_embd.weight", {kHidden, kVocab}));
  file.tensor(matrix("output.weight", {kHidden, kVocab}));
  add_mixer(file, "output_hc_", false);
  for (std::uint32_t layer = 0; layer < kLayers; ++layer) {
    const std::string block = fmt::format("blk.{}.", layer);
    add_mixer(file, block + "hc_attn_", true);
    add_mixer(file, block + "hc_ffn_", true);
    if (layer == kLayers - 1) {
      add_attention(file, block);
    } else {
      add_delta_net(file, block);
    }
    if (layer == kPleLayer) add_fusion(file, block);
    add_experts(file, block, experts);
  }
  file.tensor(table(rows));
}

Result<void> make(const std::string& path, std::uint64_t rows, std::uint64_t dense_mib, const std::string& tokenizer) {
  const auto constants = derive_qwen_ple({.vocab_size = kVocab,
                                          .eos_token_id = kEndOfText,
                                          .image_token_id = std::nullopt,
                                          .base = rows / kHeads,
                                          .ngram_size = kNgram,
                                          .heads_per_order = kHeadsPerOrder});
  if (!constants) return constants.error();
  const std::uint64_t addressed = constants->head_offsets.back() + constants->head_sizes.back();
  const std::uint64_t padded = (addressed + 127) / 128 * 128;
  const auto experts =
      static_cast<std::uint32_t>(std::clamp<std::uint64_t>((dense_mib << 20) / kExpertBytes, kExpertsMin, kExpertsMax));
  GgufWriter file;
  add_model_keys(file, experts);
  add_table_keys(file, *constants);
  if (auto taken = file.keys_of(tokenizer, "tokenizer."); !taken) return taken;
  add_tensors(file, padded, experts);
  fmt::print(stderr, "{}: {} rows of {} bytes, {} experts\n", path, padded, kRowBytes, experts);
  return file.write(path);
}

}  // namespace
}  // namespace rowtide::bench

int main(int argc, char** argv) {
  CLI::App app{"Writes a qwen4exp GGUF file with a full-size n-gram table on a tiny backbone."};
  std::string path, tokenizer = ROWTIDE_SOURCE_DIR "/models/tidepool.gguf";
  std::uint64_t rows = 320'000'000, dense_mib = 0;
  app.add_option("PATH", path, "the file to write")->required();
  app.add_option("--rows", rows, "rows, rounded up to what 16 prime head sizes give")
      ->check(CLI::Range(16'000, 2'000'000'000));
  app.add_option("--dense-mib", dense_mib, "grow the other weights by experts to about so many MiB (up to about 850)");
  app.add_option("--tokenizer", tokenizer, "GGUF file to take the tokenizer from: 4,096 tokens, end of text 4093");
  CLI11_PARSE(app, argc, argv);
  if (auto made = rowtide::bench::make(path, rows, dense_mib, tokenizer); !made) {
    fmt::print(stderr, "make_table: {}\n", made.error().message);
    return 4;
  }
  return 0;
}
