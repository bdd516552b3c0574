// Checkpoints taken apart by their headers: every byte of a tensor in one part.
#include "sizing/anatomy.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "sizing/published_checkpoints.h"
#include "support/process_memory.h"
#include "support/sanitized.h"
#include "support/temp_dir.h"

namespace rowtide::sizing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

Model taken_apart(const std::string& path) {
  auto model = model_of_checkpoint(path);
  EXPECT_TRUE(model) << (model ? "" : model.error().message);
  return model ? *std::move(model) : Model();
}

Error failure(const std::string& path) {
  const auto model = model_of_checkpoint(path);
  EXPECT_FALSE(model);
  return model ? Error{} : model.error();
}

TEST(Anatomy, PartsByName) {
  const auto expect = [](std::string_view name, Part part) {
    EXPECT_EQ(part_name(part_of_tensor(name)), part_name(part)) << name;
  };
  expect("model.language_model.layers.3.self_attn.indexer.index_qk_proj.weight", Part::kDense);
  expect("model.language_model.layers.3.mlp.gate.weight", Part::kDense);
  expect("model.language_model.layers.1.ple.key_proj.weight", Part::kDense);
  expect("model.language_model.layers.3.mlp.experts.gate_up_proj", Part::kRoutedExpert);
  expect("model.language_model.layers.3.mlp.experts.511.up_proj.weight_scale_2", Part::kRoutedExpert);
  expect("model.language_model.layers.3.mlp.shared_expert.up_proj.weight", Part::kSharedExpert);
  expect("model.language_model.layers.3.mlp.shared_expert_gate.weight", Part::kSharedExpert);
  expect("model.language_model.embed_tokens.weight", Part::kEmbedding);
  expect("lm_head.weight", Part::kHead);
  expect("model.visual.blocks.3.attn.qkv.weight", Part::kVision);
  expect("mtp.layers.0.mlp.experts.7.up_proj.weight_scale_inv", Part::kDraftExpert);
  expect("mtp.layers.0.mlp.shared_expert.up_proj.weight", Part::kDraftDense);
  expect("mtp.fc_hidden.weight", Part::kDraftDense);
  expect("embed.weight", Part::kEmbedding);
  expect("head.weight", Part::kHead);
  expect("layers.20.attn.compressor.wkv.weight", Part::kDense);
  expect("layers.0.ffn.experts.383.w1.scale", Part::kRoutedExpert);
  expect("layers.0.ffn.shared_experts.w1.scale", Part::kSharedExpert);
  expect("mtp.2.markov_head.embed.weight", Part::kDraftDense);
  expect("mtp.2.ffn.experts.127.w1.weight", Part::kDraftExpert);
  expect("aligner.w0.weight", Part::kVision);
  expect("model.ngram_embeddings.post_projs.3.weight", Part::kDense);
  expect("model.mtp.embed_tokens.weight", Part::kEmbedding);
  expect("model.layers.9.block_sparse_moe.experts.5.w1.weight", Part::kRoutedExpert);
  expect("token_embd.weight", Part::kEmbedding);
  expect("output.weight", Part::kHead);
  expect("output_norm.weight", Part::kDense);
  expect("blk.3.ffn_down_exps.weight", Part::kRoutedExpert);
  expect("blk.3.ffn_gate_inp_shexp.weight", Part::kSharedExpert);
  expect("blk.3.ffn_gate_inp.weight", Part::kDense);
  expect("blk.3.attn_output.weight", Part::kDense);
  expect("blk.48.nextn.eh_proj.weight", Part::kDraftDense);
  expect("v.blk.0.attn_q.weight", Part::kVision);
  expect("mm.0.weight", Part::kVision);
  expect("", Part::kDense);
  expect("...", Part::kDense);
}

TEST(Anatomy, Tidepool) {
  const Model model = taken_apart(ROWTIDE_SOURCE_DIR "/models/tidepool.gguf");
  EXPECT_EQ(model.format, "gguf");
  EXPECT_EQ(model.model_type, "qwen4exp");
  EXPECT_EQ(model.family, "qwen_ple");
  EXPECT_EQ(model.precision, "Q8_0");
  EXPECT_TRUE(model.is_measured);
  EXPECT_EQ(model.layers, 4U);
  EXPECT_EQ(model.hidden, 512U);
  EXPECT_EQ(model.streams, 4U);
  EXPECT_EQ(model.vocabulary, 4'096U);
  EXPECT_EQ(model.context_most, 2'048U);
  EXPECT_EQ(model.attention_heads, 4U);
  EXPECT_EQ(model.kv_heads, 2U);
  EXPECT_EQ(model.experts, 8U);
  EXPECT_EQ(model.experts_per_token, 2U);
  EXPECT_EQ(model.expert_width, 96U);
  EXPECT_EQ(model.draft_layers, 0U);
  EXPECT_EQ(model.first_table_layer(), 1U);
  EXPECT_EQ(model.bytes_table(), 689'536U * 34);
  EXPECT_EQ(model.table_rows_per_token(), 16U);
  EXPECT_EQ(model.part(Part::kRoutedExpert).parameters, 4U * 8 * 3 * 512 * 96);
  EXPECT_EQ(model.part(Part::kRoutedExpert).bytes, 4U * 8 * 3 * 512 * 96 / 32 * 34);
  EXPECT_EQ(model.part(Part::kHead).parameters, 4'096U * 512);
  ASSERT_EQ(model.attention.size(), 1U);
  EXPECT_EQ(model.attention[0].kind, Attention::Kind::kSparse);
  EXPECT_EQ(model.attention[0].values, 2U * 2 * 64);
  EXPECT_EQ(model.attention[0].index_values, 64U);
  EXPECT_EQ(model.attention[0].attended_most, 2'051U);
  ASSERT_EQ(model.states.size(), 3U);
  EXPECT_EQ(model.states[0].layers, 3U);
  EXPECT_EQ(model.states[0].values, 4U * 64 * 64);
  EXPECT_EQ(model.states[1].values, 3U * (2 * 2 * 64 + 4 * 64));
  EXPECT_EQ(model.states[2].values, 9U * 4 * 512);
}

/// All parts together are the file without its header, but for the padding behind tensors.
TEST(Anatomy, EveryByteOfTidepoolIsInAPart) {
  const std::string path = ROWTIDE_SOURCE_DIR "/models/tidepool.gguf";
  const Model model = taken_apart(path);
  const std::uint64_t file = std::filesystem::file_size(path);
  EXPECT_LT(model.bytes_total(), file);
  EXPECT_GT(model.bytes_total(), file - 200'000);
}

void expect_as_described(const Model& measured, const Model& described) {
  for (std::size_t i = 0; i < kParts; ++i) {
    const std::string_view name = part_name(static_cast<Part>(i));
    const double bytes = static_cast<double>(described.parts[i].bytes);
    const double parameters = static_cast<double>(described.parts[i].parameters);
    EXPECT_NEAR(static_cast<double>(measured.parts[i].bytes), bytes, 0.05 * bytes) << name;
    EXPECT_NEAR(static_cast<double>(measured.parts[i].parameters), parameters, 0.05 * parameters) << name;
  }
  EXPECT_EQ(measured.bytes_table(), described.bytes_table());
  EXPECT_EQ(measured.part(Part::kTable).parameters, described.part(Part::kTable).parameters);
  EXPECT_EQ(measured.family, described.family);
  EXPECT_EQ(measured.precision, described.precision);
  EXPECT_EQ(measured.table_reads_per_token(), described.table_reads_per_token());
  EXPECT_EQ(measured.table_bytes_per_token(), described.table_bytes_per_token());
  EXPECT_EQ(measured.first_table_layer(), described.first_table_layer());
  EXPECT_EQ(measured.draft_layers, described.draft_layers);
  EXPECT_EQ(measured.draft_experts, described.draft_experts);
  EXPECT_EQ(measured.prefill_share, described.prefill_share);
  for (const KvType type : {KvType::kF16, KvType::kFp8}) {
    EXPECT_EQ(kv_bytes_per_token(measured, type, true), kv_bytes_per_token(described, type, true));
    EXPECT_EQ(state_bytes_per_sequence(measured, type, StateType::kF32, 3),
              state_bytes_per_sequence(described, type, StateType::kF32, 3));
  }
}

/// Takes the checkpoint apart in little memory, and finds all of it.
Model taken_apart_in_little_memory(const std::string& folder, const LargeCheckpoint& written) {
  restart_peak();
  const std::uint64_t before = peak_bytes();
  Model model = taken_apart(folder);
  const std::uint64_t grown = std::max(peak_bytes(), before) - before;
  EXPECT_TRUE(kSanitized || grown < std::uint64_t{256} << 20) << grown;
  const std::uint64_t index_bytes = std::filesystem::file_size(folder + "/model.safetensors.index.json");
  EXPECT_EQ(model.bytes_total(), written.bytes - (written.header_bytes - index_bytes));
  return model;
}

TEST(Anatomy, PublishedQwenInNvfp4) {
  if (is_slow()) GTEST_SKIP() << "has 220,000 tensors";
  TempDir folder;
  const LargeCheckpoint written = QwenWriter(folder.file("")).write();
  EXPECT_NEAR(static_cast<double>(written.bytes), 132.7e9, 0.05e9);
  const Model model = taken_apart_in_little_memory(folder.file(""), written);
  expect_as_described(model, *known_model("Qwen3.8-Flash-Next", "NVFP4"));
  std::uint64_t parameters = 0;
  for (const PartSize& part : model.parts) parameters += part.parameters;
  EXPECT_EQ(parameters, 179'999'981'424U);

  std::filesystem::remove(folder.file("model-00007-of-00028.safetensors"));
  const Error missing = failure(folder.file(""));
  EXPECT_EQ(missing.code, ErrorCode::kNotFound);
  EXPECT_THAT(missing.message, HasSubstr("model-00007-of-00028.safetensors"));
}

TEST(Anatomy, PublishedDeepseek) {
  TempDir folder;
  const LargeCheckpoint written = DeepseekWriter(folder.file("")).write();
  EXPECT_NEAR(static_cast<double>(written.bytes), 510'313'353'565.0, 0.5e9);
  expect_as_described(taken_apart_in_little_memory(folder.file(""), written), *known_model("DeepSeek-V4.1-Flash"));
}

/// A folder with a config.json and one safetensors file.
class SmallCheckpoint {
 public:
  explicit SmallCheckpoint(const std::string& config) { std::ofstream(folder_.file("config.json")) << config; }
  void add(const std::string& name, const std::string& dtype, std::vector<std::uint64_t> shape,
           std::uint64_t value_bytes) {
    std::uint64_t bytes = value_bytes;
    for (const std::uint64_t dimension : shape) bytes *= dimension;
    writer_.add_hole(name, dtype, std::move(shape), bytes);
  }
  std::string write() {
    writer_.write(folder_.file("model.safetensors"));
    return folder_.file("");
  }
  std::string file(const std::string& name) const { return folder_.file(name); }

 private:
  TempDir folder_;
  SafetensorsWriter writer_;
};

constexpr const char* kPlainConfig = R"({"model_type": "anything", "vocab_size": 100, "hidden_size": 64,
  "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 4096})";

TEST(Anatomy, AnEmbeddingThatIsTheHeadTooIsReadWhole) {
  SmallCheckpoint checkpoint(kPlainConfig);
  checkpoint.add("model.embed_tokens.weight", "BF16", {100, 64}, 2);
  checkpoint.add("model.layers.0.mlp.up_proj.weight", "BF16", {256, 64}, 2);
  const Model model = taken_apart(checkpoint.write());
  EXPECT_EQ(model.part(Part::kEmbedding).bytes, 0U);
  EXPECT_EQ(model.part(Part::kHead).bytes, 100U * 64 * 2);
  EXPECT_THAT(model.part(Part::kHead).source, HasSubstr("the output head too"));
  EXPECT_EQ(model.precision, "BF16");
  EXPECT_EQ(model.format, "safetensors");
  EXPECT_TRUE(model.family.empty());
  EXPECT_EQ(kv_bytes_per_token(model, KvType::kF16, false), 2 * 2 * 2 * 16 * 2);
}

TEST(Anatomy, WhatComputesNothingIsRefused) {
  std::string config = kPlainConfig;
  const std::string heads = "\"num_key_value_heads\": 2";
  config.replace(config.find(heads), heads.size(), "\"num_key_value_heads\": 0");
  SmallCheckpoint no_heads(config);
  no_heads.add("lm_head.weight", "BF16", {100, 64}, 2);
  const Error error = failure(no_heads.write());
  EXPECT_EQ(error.code, ErrorCode::kMalformed) << error.message;
  EXPECT_THAT(error.message, HasSubstr("key-value heads"));
}

TEST(Anatomy, PackedIntegersAreSeveralParameters) {
  SmallCheckpoint checkpoint(kPlainConfig);
  checkpoint.add("lm_head.weight", "BF16", {100, 64}, 2);
  checkpoint.add("model.layers.0.mlp.up_proj.qweight", "I32", {8, 256}, 4);
  checkpoint.add("model.layers.0.mlp.up_proj.scales", "F16", {1, 256}, 2);
  checkpoint.add("model.layers.0.mlp.up_proj.qzeros", "I32", {1, 32}, 4);
  checkpoint.add("model.layers.0.mlp.down_proj.weight", "U8", {64, 128}, 1);
  checkpoint.add("model.layers.0.mlp.down_proj.weight_scale", "F8_E4M3", {64, 16}, 1);
  checkpoint.add("model.layers.0.mlp.gate_proj.weight", "I8", {256, 64}, 1);
  const Model model = taken_apart(checkpoint.write());
  EXPECT_EQ(model.part(Part::kDense).parameters, 3U * 64 * 256);
  EXPECT_EQ(model.part(Part::kDense).bytes, 8U * 256 * 4 + 512 + 128 + 64 * 128 + 64 * 16 + 256 * 64);
}

/// DeepSeek-V3 keeps its draft module as one more layer.
TEST(Anatomy, BlocksBehindTheLastLayerAreTheDraftModules) {
  SmallCheckpoint checkpoint(R"({"model_type": "deepseek_v3", "vocab_size": 100, "hidden_size": 64,
    "num_hidden_layers": 2, "num_attention_heads": 4, "kv_lora_rank": 32, "qk_rope_head_dim": 8,
    "n_routed_experts": 16, "num_experts_per_tok": 4, "moe_intermediate_size": 32,
    "num_nextn_predict_layers": 1, "max_position_embeddings": 4096})");
  checkpoint.add("lm_head.weight", "BF16", {100, 64}, 2);
  checkpoint.add("model.embed_tokens.weight", "BF16", {100, 64}, 2);
  checkpoint.add("model.layers.1.mlp.experts.0.up_proj.weight", "F8_E4M3", {32, 64}, 1);
  checkpoint.add("model.layers.2.mlp.experts.0.up_proj.weight", "F8_E4M3", {32, 64}, 1);
  checkpoint.add("model.layers.2.eh_proj.weight", "BF16", {64, 128}, 2);
  checkpoint.add("model.layers.2.embed_tokens.weight", "BF16", {100, 64}, 2);
  const Model model = taken_apart(checkpoint.write());
  EXPECT_EQ(model.draft_layers, 1U);
  EXPECT_EQ(model.draft_experts, 16U);
  EXPECT_EQ(model.part(Part::kDraftExpert).bytes, 32U * 64);
  EXPECT_EQ(model.part(Part::kDraftDense).bytes, 64U * 128 * 2);
  EXPECT_EQ(model.part(Part::kEmbedding).bytes, 2U * 100 * 64 * 2);
  EXPECT_EQ(kv_bytes_per_token(model, KvType::kBf16, false), 2 * 40 * 2);
  EXPECT_EQ(kv_bytes_per_token(model, KvType::kBf16, true), 3 * 40 * 2);
}

/// What the config tells of a draft module counts for nothing where the files have none.
TEST(Anatomy, ADraftModuleThatIsNotThere) {
  SmallCheckpoint checkpoint(R"({"model_type": "x", "vocab_size": 100, "hidden_size": 64, "num_hidden_layers": 2,
    "num_attention_heads": 4, "mtp_num_hidden_layers": 1, "max_position_embeddings": 4096})");
  checkpoint.add("lm_head.weight", "BF16", {100, 64}, 2);
  const Model model = taken_apart(checkpoint.write());
  EXPECT_EQ(model.draft_layers, 0U);
  EXPECT_EQ(model.attention.size(), 1U);
}

TEST(Anatomy, Errors) {
  EXPECT_EQ(failure("/nowhere/at/all.gguf").code, ErrorCode::kNotFound);

  SmallCheckpoint alone("{}");
  alone.add("lm_head.weight", "BF16", {100, 64}, 2);
  const std::string path = alone.write();
  EXPECT_EQ(failure(path).code, ErrorCode::kUnsupported);
  EXPECT_THAT(failure(path).message, AllOf(HasSubstr("config.json"), HasSubstr("num_hidden_layers is missing")));
  std::filesystem::remove(alone.file("config.json"));
  EXPECT_THAT(failure(path).message, HasSubstr("no config.json"));
}

}  // namespace
}  // namespace rowtide::sizing
