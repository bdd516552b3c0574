#include "checkpoint/model_config.h"

#include <gtest/gtest.h>

#include <string>

#include "support/memory_disk.h"

namespace rowtide::checkpoint {
namespace {

Result<ModelConfig> config_from(const std::string& text) {
  MemoryDisk disk("m/config.json", text);
  auto file = disk.opener()("m/config.json");
  return ModelConfig::read(**file);
}

const char kConfig[] = R"({
  "architectures": ["Qwen4ExpForConditionalGeneration"],
  "model_type": "qwen4_exp",
  "image_token_id": 248056,
  "vocab_size": 1,
  "rms_norm_eps": 1e-20,
  "tie": false,
  "nothing": null,
  "eos_token_id": 7,
  "text_config": {
    "model_type": "qwen4_exp_text",
    "vocab_size": 248320,
    "seed": 18446744073709551615,
    "offset": -9223372036854775808,
    "ple_layer_ids": [2, 5],
    "eos_token_id": null,
    "layer_types": ["linear", "full"],
    "mixed": [1, "x"],
    "deep": [[1], {"a": 2}],
    "empty": [],
    "rope_parameters": {"rope_theta": 10000.0, "vocab_size": 3},
    "ratio": 0.5
  },
  "quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128], "layers": {"a.b": {"bits": 4}}}
})";

TEST(ModelConfig, LooksIntoTheTextModelFirst) {
  auto config = config_from(kConfig);
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_EQ(**config->integer<std::int64_t>("vocab_size"), 248320);
  EXPECT_EQ(**config->integer<std::int64_t>("image_token_id"), 248056);
  EXPECT_EQ(**config->text("model_type"), "qwen4_exp_text");
  EXPECT_EQ(*config->model_type(), "qwen4_exp");
  EXPECT_EQ(*config->architectures(), std::vector<std::string>{"Qwen4ExpForConditionalGeneration"});
  EXPECT_EQ(**config->integer<std::int64_t>("eos_token_id"), 7);  // null there counts as absent
}

TEST(ModelConfig, GivesEveryType) {
  auto config = config_from(kConfig);
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_EQ(**config->integer<std::uint64_t>("seed"), UINT64_MAX);
  EXPECT_EQ(**config->integer<std::int64_t>("offset"), INT64_MIN);
  EXPECT_EQ(**config->integers<std::uint32_t>("ple_layer_ids"), (std::vector<std::uint32_t>{2, 5}));
  EXPECT_EQ(**config->integers<std::uint32_t>("vocab_size"), std::vector<std::uint32_t>{248320});
  EXPECT_EQ(**config->integers<std::uint32_t>("empty"), std::vector<std::uint32_t>());
  EXPECT_EQ(**config->texts("layer_types"), (std::vector<std::string>{"linear", "full"}));
  EXPECT_EQ(**config->real("ratio"), 0.5);
  EXPECT_EQ(**config->real("rms_norm_eps"), 1e-20);
  EXPECT_EQ(**config->real("offset"), -0x1p63);
  EXPECT_EQ(**config->boolean("tie"), false);
  EXPECT_TRUE(config->is_quantized());
  EXPECT_EQ(**config->text("quantization_config.quant_method"), "fp8");
  EXPECT_EQ(**config->integers<std::int32_t>("quantization_config.weight_block_size"),
            (std::vector<std::int32_t>{128, 128}));
  EXPECT_TRUE(config->has("rope_parameters"));
}

TEST(ModelConfig, GivesNothingForWhatIsAbsent) {
  auto config = config_from(kConfig);
  ASSERT_TRUE(config.ok()) << config.error().message;
  for (const char* key : {"absent", "nothing", "rope_theta", "text_config.absent", "a.b", ""}) {
    EXPECT_FALSE(config->has(key)) << key;
    EXPECT_FALSE(config->integer<std::int64_t>(key)->has_value()) << key;
    EXPECT_FALSE(config->integers<std::int64_t>(key)->has_value()) << key;
    EXPECT_FALSE(config->text(key)->has_value()) << key;
    EXPECT_FALSE(config->texts(key)->has_value()) << key;
    EXPECT_FALSE(config->real(key)->has_value()) << key;
    EXPECT_FALSE(config->boolean(key)->has_value()) << key;
  }
  auto empty = config_from("{}");
  ASSERT_TRUE(empty.ok());
  EXPECT_EQ(*empty->model_type(), "");
  EXPECT_TRUE(empty->architectures()->empty());
  EXPECT_FALSE(empty->is_quantized());
}

TEST(ModelConfig, NamesFileKeyAndValueOfAnotherType) {
  auto config = config_from(kConfig);
  ASSERT_TRUE(config.ok()) << config.error().message;
  constexpr ErrorCode kCode = ErrorCode::kMalformed;
  expect_refused(
      config->integer<std::uint32_t>("seed"), kCode,
      {"m/config.json: text_config.seed is 18446744073709551615, which is not a whole number from 0 to 4294967295"});
  expect_refused(config->integer<std::uint64_t>("offset"), kCode, {"text_config.offset is -9223372036854775808"});
  expect_refused(config->integer<std::int64_t>("seed"), kCode, {"from -9223372036854775808 to 9223372036854775807"});
  expect_refused(config->integer<std::int64_t>("ratio"), kCode,
                 {"text_config.ratio is 0.5, which is not a whole number"});
  expect_refused(config->integer<std::int64_t>("ple_layer_ids"), kCode, {"text_config.ple_layer_ids is [2, 5]"});
  expect_refused(config->integer<std::int64_t>("rope_parameters"), kCode, {"text_config.rope_parameters is an object"});
  expect_refused(config->integer<std::int64_t>("tie"), kCode, {"config.json: tie is false"});
  expect_refused(config->integers<std::int64_t>("mixed"), kCode,
                 {"text_config.mixed is [1, 'x'], which is not a list of whole"});
  expect_refused(config->integers<std::int64_t>("deep"), kCode, {"text_config.deep is [, ...]"});
  expect_refused(config->texts("mixed"), kCode, {"which is not a list of texts"});
  expect_refused(config->text("vocab_size"), kCode, {"text_config.vocab_size is 248320, which is not a text"});
  expect_refused(config->boolean("vocab_size"), kCode, {"which is not true or false"});
  expect_refused(config->real("layer_types"), kCode, {"is ['linear', 'full'], which is not a finite number"});
  expect_refused(config_from(R"({"model_type": 3})")->model_type(), kCode, {"model_type is 3, which is not a text"});
  expect_refused(config_from(R"({"architectures": {}})")->architectures(), kCode, {"architectures is an object"});
  EXPECT_EQ(config->error(ErrorCode::kMismatch, "vocab_size", "but the table wants 5").message,
            "m/config.json: text_config.vocab_size is 248320, but the table wants 5");
  EXPECT_EQ(config->error(ErrorCode::kMismatch, "absent", "and must be there").message,
            "m/config.json: absent is missing, and must be there");
}

/// As Python writes them.
TEST(ModelConfig, ReadsPastNumbersThatAreNotFinite) {
  auto config =
      config_from(R"({"time_step_limit": [0.0, Infinity], "scale": NaN, "text_config": {"least": -Infinity}, "n": 3})");
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_EQ(**config->integer<std::int64_t>("n"), 3);
  EXPECT_TRUE(config->has("time_step_limit"));
  expect_refused(config->real("scale"), ErrorCode::kMalformed, {"scale is NaN", "a finite number"});
  expect_refused(config->real("least"), ErrorCode::kMalformed, {"text_config.least is -Infinity"});
  expect_refused(config->integers<std::int64_t>("time_step_limit"), ErrorCode::kMalformed, {"[0.0, Infinity]"});
}

TEST(ModelConfig, RefusesWhatIsNoConfig) {
  expect_refused(config_from(""), ErrorCode::kMalformed, {"m/config.json", "is not JSON"});
  expect_refused(config_from("[]"), ErrorCode::kMalformed,
                 {"m/config.json", "a list stands where the config's object belongs"});
  expect_refused(config_from("3"), ErrorCode::kMalformed, {"3 stands where the config's object belongs"});
  expect_refused(config_from(R"({"a": 1, "a": 2})"), ErrorCode::kMalformed, {": a: occurs twice"});
  expect_refused(config_from(R"({"text_config": {"a": 1, "a": 2}})"), ErrorCode::kMalformed,
                 {"text_config.a: occurs twice"});
}

TEST(ModelConfig, SaysOfLongValuesThatTheyAreNotKept) {
  std::string list = "[0";
  for (int i = 1; i < 200'000; ++i) list += "," + std::to_string(i);
  auto config = config_from(R"({"a": 1, "long": )" + list + R"(], "b": [2]})");
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_EQ(**config->integer<int>("a"), 1);
  expect_refused(config->integers<int>("long"), ErrorCode::kMalformed, {"long is [0, 1, 2, 3, 4, 5, 6, 7, ...]"});

  std::string keys = "{";
  for (int i = 0; i < 30'000; ++i) keys += "\"k" + std::to_string(i) + "\":1,";
  expect_refused(config_from(keys + "\"a\":1}"), ErrorCode::kUnsupported, {"more than 20000 keys"});
  EXPECT_TRUE(config_from("{\"deep\": " + keys + "\"a\":1}}").ok());
}

}  // namespace
}  // namespace rowtide::checkpoint
