// From config.json files and GGUF metadata to what layers keep.
#include "sizing/layers.h"

#include <gmock/gmock.h>

#include <cstring>

#include "checkpoint/gguf_header.h"
#include "checkpoint/gguf_writer.h"
#include "io/file.h"

namespace rowtide::sizing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::unique_ptr<io::File> file_of(const std::string& content) {
  std::vector<std::byte> bytes(content.size());
  std::memcpy(bytes.data(), content.data(), content.size());
  return io::memory_file("config.json", std::move(bytes));
}

/// Of a config.json with these keys beside those that all need.
Result<Model> layers_of(const std::string& type, const std::string& keys) {
  const std::string text = R"({"model_type": ")" + type + R"(", "hidden_size": 1024, "num_hidden_layers": 12,
      "num_attention_heads": 16, "vocab_size": 1000, "max_position_embeddings": 32768)" +
                           (keys.empty() ? "" : ", ") + keys + "}";
  auto config = checkpoint::ModelConfig::read(*file_of(text));
  if (!config) return config.error();
  ConfigKeys from(*config, type);
  Model model;
  if (auto added = add_layers(from, std::nullopt, model); !added) return added.error();
  return model;
}

Model known_layers(const std::string& type, const std::string& keys) {
  auto model = layers_of(type, keys);
  EXPECT_TRUE(model) << (model ? "" : model.error().message);
  return model ? *std::move(model) : Model();
}

std::string config_refusal(const std::string& type, const std::string& keys, ErrorCode code = ErrorCode::kUnsupported) {
  const auto model = layers_of(type, keys);
  EXPECT_FALSE(model) << keys;
  if (model) return "";
  EXPECT_EQ(model.error().code, code) << model.error().message;
  return model.error().message;
}

double kept(const Model& model) { return kv_bytes_per_token(model, KvType::kF16, false); }
double windows(const Model& model) { return state_bytes_per_sequence(model, KvType::kF16, StateType::kF32, 0); }

TEST(Layers, OrdinaryAttention) {
  EXPECT_EQ(kept(known_layers("llama", "")), 12 * 2 * 1'024 * 2);
  EXPECT_EQ(kept(known_layers("never_seen", R"("num_key_value_heads": 4)")), 12 * 2 * 256 * 2);
  EXPECT_EQ(kept(known_layers("qwen3", R"("num_key_value_heads": 4, "head_dim": 128)")), 12 * 2 * 512 * 2);
  EXPECT_EQ(kept(known_layers("mimo", R"("num_key_value_heads": 4, "head_dim": 192, "v_head_dim": 128)")),
            12 * 4 * 320 * 2);
}

TEST(Layers, Windows) {
  const std::string heads = R"("num_key_value_heads": 4, "sliding_window": 4096)";  // of 64 values
  const Model mistral = known_layers("mistral", heads);
  EXPECT_EQ(kept(mistral), 0);
  EXPECT_EQ(windows(mistral), 12.0 * 512 * 4'096 * 2);
  const Model gemma2 = known_layers("gemma2", heads);
  EXPECT_EQ(kept(gemma2), 6 * 512 * 2);
  EXPECT_EQ(windows(gemma2), 6.0 * 512 * 4'096 * 2);
  EXPECT_EQ(kept(known_layers("gemma3", heads)), 2 * 512 * 2);
  EXPECT_EQ(kept(known_layers("cohere2_of_my_own", heads + R"(, "sliding_window_pattern": 4)")), 3 * 512 * 2);
  EXPECT_EQ(kept(known_layers("qwen2", heads + R"(, "use_sliding_window": false)")), 12 * 512 * 2);
  const std::string from_eighth = R"(, "use_sliding_window": true, "max_window_layers": 8)";
  EXPECT_EQ(kept(known_layers("qwen2", heads + from_eighth)), 8 * 512 * 2);
  EXPECT_EQ(kept(known_layers("x", R"("sliding_window": null)")), 12 * 2'048 * 2);
  // A window that nothing falls out of is none.
  EXPECT_EQ(kept(known_layers("x", R"("sliding_window": 32768)")), 12 * 2'048 * 2);
  const std::string s = R"("sliding_attention", )", f = R"("full_attention", )";
  EXPECT_EQ(kept(known_layers("gpt_oss", heads + R"(, "layer_types": [)" + s + f + s + f + s + f + s + f + s + s + s +
                                             R"("sliding_attention"])")),
            4 * 512 * 2);
  EXPECT_EQ(kept(known_layers("llama4", R"("num_key_value_heads": 4, "attention_chunk_size": 8192,
      "no_rope_layers": [1, 1, 1, 0, 1, 1, 1, 0, 1, 1, 1, 0])")),
            3 * 512 * 2);
}

TEST(Layers, LayersThatShareWhatEarlierOnesKeep) {
  const Model model = known_layers("gemma3n", R"("sliding_window": 512, "num_kv_shared_layers": 4)");
  ASSERT_EQ(model.attention.size(), 2U);
  EXPECT_EQ(model.attention[0].layers, 1U);  // of the layers 5 and 10 the first eight have one
  EXPECT_EQ(model.attention[0].readers, 2U);
  EXPECT_EQ(model.attention[1].layers, 7U);
  EXPECT_EQ(model.attention[1].readers, 10U);
}

constexpr const char* kDeltaNet = R"("num_key_value_heads": 2, "head_dim": 256, "full_attention_interval": 4,
  "linear_num_key_heads": 4, "linear_num_value_heads": 8, "linear_key_head_dim": 128, "linear_value_head_dim": 64,
  "linear_conv_kernel_dim": 4)";

TEST(Layers, GatedDeltaNet) {
  const Model model = known_layers("qwen3_next", kDeltaNet);
  EXPECT_EQ(kept(model), 3 * 2 * 2 * 256 * 2);
  EXPECT_EQ(windows(model), 9.0 * 8 * 128 * 64 * 4 + 9.0 * 3 * (2 * 4 * 128 + 8 * 64) * 2);
  EXPECT_EQ(model.attention[0].kind, Attention::Kind::kFull);
  EXPECT_EQ(model.attention[0].kv_heads, 2U);
  EXPECT_EQ(model.states[0].heads, 4U);
}

TEST(Layers, LatentAttention) {
  const std::string latent = R"("kv_lora_rank": 512, "qk_rope_head_dim": 64)";
  EXPECT_EQ(kept(known_layers("deepseek_v3", latent)), 12 * 576 * 2);
  EXPECT_EQ(known_layers("deepseek_v3", latent).kv_heads, 1U);
  const Model sparse = known_layers("deepseek_v32", latent + R"(, "index_topk": 2048, "index_head_dim": 128)");
  EXPECT_EQ(kept(sparse), 12 * (576 + 128) * 2);
  EXPECT_EQ(sparse.attention[0].attended_most, 2'048U);
  EXPECT_THAT(config_refusal("deepseek_v3", R"("kv_lora_rank": 512)"), HasSubstr("qk_rope_head_dim is missing"));
}

TEST(Layers, CompressedAttention) {
  const std::string common = R"("head_dim": 512, "sliding_window": 128, "index_head_dim": 128, "index_topk": 512)";
  const Model model = known_layers("deepseek_v4", common + R"(, "compress_ratios":
      [0, 0, 4, 128, 4, 128, 4, 128, 4, 128, 4, 0, 0])");
  EXPECT_EQ(kept(model), (5 * (512 + 128) / 4.0 + 4 * 512 / 128.0) * 2);
  EXPECT_EQ(windows(model), 12.0 * 128 * 512 * 2);
  EXPECT_EQ(model.prefill_share, 1);
  EXPECT_THAT(config_refusal("deepseek_v4", common + R"(, "compress_ratios": [4, 4])"),
              AllOf(HasSubstr("compress_ratios"), HasSubstr("all 12 layers")));
  const std::string ratios = R"(, "compress_ratios": [0, 0, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1])";
  EXPECT_EQ(known_layers("deepseek_v41", common + ratios + R"(, "kv_source_layer_ids": [2, 6])").prefill_share, 0.5);
  for (const char* sources : {"[0, 6]", "[12]", "[2, 2]"}) {
    EXPECT_THAT(config_refusal("deepseek_v41", common + ratios + R"(, "kv_source_layer_ids": )" + sources),
                HasSubstr("kv_source_layer_ids"));
  }
}

TEST(Layers, Experts) {
  const Model model = known_layers("x", R"("num_local_experts": 8, "num_experts_per_tok": 2)");
  EXPECT_EQ(model.experts, 8U);
  EXPECT_EQ(model.experts_per_token, 2U);
  EXPECT_THAT(config_refusal("x", R"("num_experts": 8)"), HasSubstr("num_experts_per_tok is missing"));
  EXPECT_THAT(config_refusal("x", R"("num_experts": 8, "num_experts_per_tok": 9)"), HasSubstr("of 8 experts"));
}

TEST(Layers, WhatIsNotKnownIsRefused) {
  EXPECT_THAT(config_refusal("mamba2", R"("mamba_d_state": 128)"), HasSubstr("mamba_d_state"));
  EXPECT_THAT(config_refusal("kimi_linear", R"("kv_lora_rank": 512, "qk_rope_head_dim": 64, "linear_attn_config": {})"),
              HasSubstr("linear_attn_config"));
  EXPECT_THAT(config_refusal("x", R"("layer_types": ["lightning"])"), HasSubstr("layer_types"));
  EXPECT_THAT(config_refusal("x", R"("layer_types": ["full_attention"])"), HasSubstr("all 12 layers"));
  EXPECT_THAT(config_refusal("x", R"("full_attention_interval": 4)"), HasSubstr("linear_num_key_heads is missing"));
}

TEST(Layers, NumbersThatNoModelHas) {
  EXPECT_THAT(config_refusal("x", R"("num_key_value_heads": 99999999)", ErrorCode::kMalformed),
              HasSubstr("num_key_value_heads is 99999999"));
  EXPECT_THAT(config_refusal("x", R"("num_key_value_heads": -1)", ErrorCode::kMalformed),
              HasSubstr("num_key_value_heads"));
  EXPECT_THAT(config_refusal("x", R"("num_key_value_heads": "two")", ErrorCode::kMalformed),
              HasSubstr("num_key_value_heads"));
  EXPECT_THAT(config_refusal("x", R"("sliding_window": 18446744073709551615)", ErrorCode::kMalformed),
              HasSubstr("sliding_window"));
  EXPECT_THAT(
      config_refusal("x", R"("full_attention_interval": 4, "linear_num_key_heads": 1, "linear_num_value_heads": 1000000,
      "linear_key_head_dim": 1000000, "linear_value_head_dim": 1000000, "linear_conv_kernel_dim": 4)"),
      HasSubstr("1000000000000000000 values"));
  auto config = checkpoint::ModelConfig::read(
      *file_of(R"({"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 0})"));
  ASSERT_TRUE(config);
  ConfigKeys keys(*config, "x");
  Model model;
  const auto added = add_layers(keys, std::nullopt, model);
  ASSERT_FALSE(added);
  EXPECT_THAT(added.error().message, HasSubstr("num_attention_heads is 0"));
}

/// Of the metadata of a GGUF file of that architecture with these keys beside those that all need.
Result<Model> gguf_layers(const std::string& architecture, const std::function<void(GgufWriter&)>& more) {
  GgufWriter writer;
  writer.set("general.architecture", architecture);
  writer.set<std::uint32_t>(architecture + ".block_count", 12);
  writer.set<std::uint32_t>(architecture + ".embedding_length", 1'024);
  writer.set<std::uint32_t>(architecture + ".context_length", 32'768);
  more(writer);
  auto header = checkpoint::read_gguf_header(*file_of(writer.bytes()));
  if (!header) return header.error();
  GgufKeys keys(header->metadata, architecture);
  Model model;
  if (auto added = add_layers(keys, std::nullopt, model); !added) return added.error();
  return model;
}

TEST(Layers, GgufMetadata) {
  auto llama = gguf_layers("llama", [](GgufWriter& writer) {
    writer.set<std::uint32_t>("llama.attention.head_count", 16);
    writer.set<std::uint32_t>("llama.attention.head_count_kv", 4);
  });
  ASSERT_TRUE(llama) << llama.error().message;
  EXPECT_EQ(kept(*llama), 12 * 512 * 2);
  EXPECT_EQ(llama->context_most, 32'768U);

  auto latent = gguf_layers("deepseek2", [](GgufWriter& writer) {
    writer.set<std::uint32_t>("deepseek2.attention.head_count", 16);
    writer.set<std::uint32_t>("deepseek2.attention.kv_lora_rank", 512);
    writer.set<std::uint32_t>("deepseek2.rope.dimension_count", 64);
    writer.set<std::uint32_t>("deepseek2.nextn_predict_layers", 1);
  });
  ASSERT_TRUE(latent) << latent.error().message;
  EXPECT_EQ(latent->layers, 11U);
  EXPECT_EQ(latent->draft_layers, 1U);
  EXPECT_EQ(kept(*latent), 11 * 576 * 2);

  auto hybrid = gguf_layers("granite", [](GgufWriter& writer) {
    writer.set<std::uint32_t>("granite.attention.head_count", 16);
    writer.set("granite.attention.head_count_kv", std::vector<std::uint32_t>{4, 4, 2, 4, 4, 2, 4, 4, 2, 4, 4, 0});
  });
  ASSERT_TRUE(hybrid) << hybrid.error().message;
  EXPECT_EQ(kept(*hybrid), (8 * 4 + 3 * 2) * 2 * 64 * 2);
}

TEST(Layers, GgufErrorsNameTheFilesOwnKeys) {
  const auto none = gguf_layers("llama", [](GgufWriter&) {});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ErrorCode::kUnsupported);
  EXPECT_THAT(none.error().message, HasSubstr("'llama.attention.head_count': is missing"));

  const auto mamba = gguf_layers("mamba", [](GgufWriter& writer) {
    writer.set<std::uint32_t>("mamba.attention.head_count", 16);
    writer.set<std::uint32_t>("mamba.ssm.state_size", 128);
    writer.set<std::uint32_t>("mamba.ssm.time_step_rank", 128);
  });
  ASSERT_FALSE(mamba);
  EXPECT_THAT(mamba.error().message, HasSubstr("'mamba.ssm.state_size'"));

  const auto all_draft = gguf_layers("llama", [](GgufWriter& writer) {
    writer.set<std::uint32_t>("llama.attention.head_count", 16);
    writer.set<std::uint32_t>("llama.nextn_predict_layers", 12);
  });
  ASSERT_FALSE(all_draft);
  EXPECT_THAT(all_draft.error().message, HasSubstr("'llama.nextn_predict_layers'"));
}

}  // namespace
}  // namespace rowtide::sizing
