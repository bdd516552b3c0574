// The described models against what was published of them.
#include <gmock/gmock.h>

#include <cmath>

#include "sizing/anatomy.h"
#include "sizing/planned.h"

namespace rowtide::sizing {
namespace {

using ::testing::HasSubstr;

std::uint64_t parameters(const Model& model) {
  std::uint64_t sum = 0;
  for (const PartSize& part : model.parts) sum += part.parameters;
  return sum;
}

void expect_near(double value, double published, double share = 0.05) {
  EXPECT_NEAR(value, published, published * share);
}

TEST(KnownModels, QwenHasTheParametersThatItsCheckpointCounts) {
  EXPECT_EQ(parameters(known("Qwen3.8-Flash-Next", "BF16")), 179'999'981'424U);
}

TEST(KnownModels, QwenTable) {
  const Model fp8 = known("Qwen3.8-Flash-Next", "FP8");
  ASSERT_EQ(fp8.tables.size(), 1U);
  EXPECT_EQ(fp8.tables[0].rows, 320'001'536U);
  EXPECT_EQ(fp8.bytes_table(), 51'200'245'760U);
  EXPECT_EQ(fp8.table_bytes_per_token(), 2'560U);
  EXPECT_EQ(fp8.table_rows_per_token(), 16U);
  EXPECT_EQ(fp8.first_table_layer(), 1U);
  EXPECT_EQ(known("Qwen3.8-Flash-Next", "NVFP4").bytes_table(), 51'200'245'760U);
  EXPECT_EQ(known("Qwen3.8-Flash-Next", "BF16").bytes_table(), 102'400'491'520U);
  EXPECT_EQ(known("Qwen3.8-Flash-Next", "Q4").bytes_table(), 28'800'138'240U);  // 26.82 GiB
}

TEST(KnownModels, QwenCheckpointsHaveTheirPublishedSizes) {
  expect_near(static_cast<double>(known("Qwen3.8-Flash-Next", "NVFP4").bytes_total()), 132.7e9, 0.002);
  expect_near(static_cast<double>(known("Qwen3.8-Flash-Next", "NVFP4").bytes_rest()), 81.5e9, 0.002);
  expect_near(static_cast<double>(known("Qwen3.8-Flash-Next", "FP8").bytes_total()), 172.8 * kGiB, 0.002);
  expect_near(static_cast<double>(known("Qwen3.8-Flash-Next", "BF16").bytes_total()), 360e9, 0.002);
  const Model q4 = known("Qwen3.8-Flash-Next", "Q4");
  expect_near(static_cast<double>(q4.bytes_total()), 103.7 * kGiB, 0.002);
  expect_near(static_cast<double>(q4.bytes_rest()), 76.9 * kGiB, 0.0001);
}

TEST(KnownModels, TheGgufFileHasNeitherDraftModuleNorVision) {
  const Model model = known("Qwen3.8-Flash-Next", "Q4");
  EXPECT_EQ(model.format, "gguf");
  EXPECT_EQ(model.draft_layers, 0U);
  EXPECT_EQ(model.part(Part::kDraftExpert).bytes, 0U);
  EXPECT_EQ(model.part(Part::kVision).bytes, 0U);
  EXPECT_EQ(parameters(model), 176'943'899'520U);  // "176.9 B in GGUF form"
  EXPECT_EQ(known("Qwen3.8-Flash-Next").draft_layers, 1U);
}

/// At 273 GB/s the weights of a token take 14.1 ms: 71 tokens a second, within 5 %.
TEST(KnownModels, QwenQ4BytesReadForAToken) {
  const Model model = known("Qwen3.8-Flash-Next", "Q4");
  const double experts =
      static_cast<double>(model.part(Part::kRoutedExpert).bytes) * model.experts_per_token / model.experts;
  const double bytes =
      experts + static_cast<double>(model.part(Part::kDense).bytes + model.part(Part::kSharedExpert).bytes +
                                    model.part(Part::kHead).bytes);
  expect_near(273e9 / bytes, 71);
}

TEST(KnownModels, QwenLayers) {
  const Model model = known("Qwen3.8-Flash-Next");
  EXPECT_EQ(model.layers, 48U);
  EXPECT_EQ(model.context_most, 262'144U);
  EXPECT_EQ(model.streams, 4U);
  EXPECT_EQ(model.attention_heads, 24U);
  EXPECT_EQ(model.kv_heads, 2U);
  ASSERT_EQ(model.attention.size(), 2U);
  EXPECT_EQ(model.attention[0].layers, 12U);
  EXPECT_EQ(model.attention[0].attended_most, 2051U);
  EXPECT_TRUE(model.attention[1].of_draft);
  expect_near(model.active_parameters(), 6e9, 0.2);
}

TEST(KnownModels, Deepseek) {
  const Model model = known("DeepSeek-V4.1-Flash");
  expect_near(static_cast<double>(parameters(model)), 763e9, 0.002);
  expect_near(static_cast<double>(model.bytes_total()), 510'313'353'565.0, 0.001);
  EXPECT_EQ(model.bytes_table(), 202'758'032'400U);
  EXPECT_EQ(model.part(Part::kTable).parameters, 196'613'849'600U);
  EXPECT_EQ(model.table_bytes_per_token(), 12'672U);
  EXPECT_EQ(model.table_rows_per_token(), 48U);
  EXPECT_EQ(model.table_reads_per_token(), 96U);
  EXPECT_EQ(model.first_table_layer(), 1U);
  expect_near(model.active_parameters(), 16e9);
  expect_near(model.active_parameters() * model.prefill_share, 8e9);
  EXPECT_EQ(model.draft_experts, 128U);
  EXPECT_EQ(model.draft_experts_per_token, 3U);
}

TEST(KnownModels, LongCat) {
  const Model model = known("LongCat-Flash-Lite");
  const std::uint64_t draft = model.part(Part::kDraftDense).parameters;
  expect_near(static_cast<double>(parameters(model) - draft), 68.5e9, 0.002);
  EXPECT_EQ(model.bytes_table(), 62'813'970'432U);  // 58.50 GiB
  EXPECT_EQ(model.table_rows_per_token(), 12U);
  EXPECT_EQ(model.table_bytes_per_token(), 6'144U);
  EXPECT_EQ(model.first_table_layer(), 0U);
  EXPECT_EQ(model.experts_per_token, 8U);  // 12 of 384, of which a third computes nothing
  EXPECT_GT(model.active_parameters(), 2.9e9);
  EXPECT_LT(model.active_parameters(), 4.5e9);
  EXPECT_EQ(model.draft_experts, 0U);
}

TEST(KnownModels, PlainModels) {
  EXPECT_EQ(parameters(known("Llama-3.1-8B")), 8'030'261'248U);
  expect_near(static_cast<double>(known("Llama-3.1-8B", "Q4").bytes_total()), 4.92e9, 0.003);
  EXPECT_EQ(parameters(known("Qwen3-30B-A3B")), 30'532'122'624U);
  expect_near(static_cast<double>(known("Qwen3-30B-A3B", "Q4").bytes_total()), 18.6e9, 0.005);
  EXPECT_EQ(known("Llama-3.1-8B").experts, 0U);
  EXPECT_EQ(known("Llama-3.1-8B").first_table_layer(), 32U);
}

TEST(KnownModels, EachIsWholeAndSaysWhereItsFiguresComeFrom) {
  for (const KnownModel& each : known_models()) {
    EXPECT_FALSE(each.summary.empty());
    for (const std::string& precision : each.precisions) {
      const Model model = known(each.name, precision);
      EXPECT_EQ(model.name, each.name);
      EXPECT_EQ(model.precision, precision);
      EXPECT_FALSE(model.is_measured);
      EXPECT_GT(model.context_most, 0U) << each.name;
      EXPECT_FALSE(model.attention.empty()) << each.name;
      EXPECT_TRUE(model.format == "gguf" || model.format == "safetensors") << model.format;
      EXPECT_EQ(model.family.empty(), model.tables.empty());
      std::uint64_t table_bytes = 0;
      for (const TableShape& table : model.tables) table_bytes += table.bytes();
      EXPECT_EQ(table_bytes, model.bytes_table());
      for (const PartSize& part : model.parts) {
        EXPECT_EQ(part.bytes == 0, part.source.empty());
        EXPECT_EQ(part.bytes == 0, part.parameters == 0);
      }
    }
  }
}

TEST(KnownModels, NamesInAnyForm) {
  EXPECT_EQ(known("qwen3.8-flash-next").precision, "NVFP4");
  EXPECT_EQ(known("nvidia/Qwen3.8-Flash-Next-NVFP4").precision, "NVFP4");
  EXPECT_EQ(known("Qwen/QWEN3.8-flash-next-fp8").precision, "FP8");
  EXPECT_EQ(known("Qwen3.8-Flash-Next-UD-Q4_K_XL").precision, "Q4");
  EXPECT_EQ(known("qwen3.8-flash-next", "gguf").precision, "Q4");
  EXPECT_EQ(known("qwen3.8-flash-next-fp8", "fp8").precision, "FP8");
}

std::string message(std::string_view name, std::string_view precision = "") {
  const auto model = known_model(name, precision);
  EXPECT_FALSE(model);
  if (model) return "";
  EXPECT_EQ(model.error().code, ErrorCode::kUsage);
  return model.error().message;
}

TEST(KnownModels, OthersAreRefusedWithTheNearest) {
  EXPECT_THAT(message("Qwen3.8-Flash-Nxt"), HasSubstr("did you mean 'Qwen3.8-Flash-Next'?"));
  EXPECT_THAT(message("gpt"), HasSubstr("known are Qwen3.8-Flash-Next, DeepSeek-V4.1-Flash"));
  EXPECT_THAT(message(""), HasSubstr("there is no model ''"));
  EXPECT_THAT(message("Llama-3.1-8B", "NVFP4"), HasSubstr("it is in BF16, FP8, Q4"));
  EXPECT_THAT(message("qwen3.8-flash-next-fp8", "q4"), HasSubstr("leave out one of both"));
}

}  // namespace
}  // namespace rowtide::sizing
