// Everything in golden/qwen_ple.json: constants, cases, digests of long sequences.
#include <gtest/gtest.h>

#include "address/qwen_ple.h"
#include "support/golden_addressing.h"

namespace rowtide {
namespace {

using nlohmann::json;
using test::GoldenModel;

QwenPleConfig qwen_config_of(const json& config) {
  return {.vocab_size = config["vocab_size"],
          .eos_token_id = config["eos_token_id"],
          .image_token_id = std::nullopt,
          .seed = test::golden_u64(config["seed"]),
          .base = config["ngram_vocab_size_base"],
          .ngram_size = config["ngram_size"],
          .heads_per_order = config["heads_per_ngram"],
          .dense_index = config["dense_ple_index"]};
}

std::vector<GoldenModel> qwen_models() {
  std::vector<GoldenModel> models;
  const json file = test::golden("qwen_ple.json");
  for (const json& entry : file["configs"]) {
    const QwenPleConfig config = qwen_config_of(entry["config"]);
    auto constants = derive_qwen_ple(config);
    EXPECT_TRUE(constants.ok()) << entry["name"] << ": " << constants.error().message;
    models.push_back({.entry = entry,
                      .tables = {make_qwen_ple(config, *constants)},
                      .column_offsets = {},
                      .vocab_size = static_cast<std::uint64_t>(config.vocab_size),
                      .special_id = config.eos_token_id});
  }
  EXPECT_EQ(models.size(), 6U);
  return models;
}

TEST(QwenPleGolden, ConstantsAreDerived) {
  for (const GoldenModel& model : qwen_models()) {
    SCOPED_TRACE(model.name());
    const json& derived = model.entry["derived"];
    const QwenPleConfig config = qwen_config_of(model.entry["config"]);
    auto constants = derive_qwen_ple(config);
    ASSERT_TRUE(constants.ok());
    EXPECT_EQ(constants->multipliers, test::golden_u64s(derived["layer_multipliers"]));
    EXPECT_EQ(constants->head_sizes, test::golden_u64s(derived["ngram_heads_vocab_sizes"]));
    EXPECT_EQ(constants->head_offsets, test::golden_u64s(derived["ngram_heads_offsets"]));
    EXPECT_EQ(model.tables[0]->row_count(), derived["rows_used"].get<std::uint64_t>());
    EXPECT_EQ(model.tables[0]->rows_per_token(), derived["total_heads"].get<std::size_t>());

    std::uint64_t state = config.seed + 10007 * config.dense_index;
    for (const std::uint64_t expected : test::golden_u64s(derived["splitmix64_values"])) {
      EXPECT_EQ(splitmix64(state += kSplitmix64Gamma), expected);
    }
    for (const json& located : derived["locate"]) {
      const RowId row = located["row"];
      EXPECT_EQ(row >= model.tables[0]->row_count(), located["head"].is_null()) << row;
      if (located["head"].is_null()) continue;
      const auto after = std::ranges::upper_bound(constants->head_offsets, row);
      EXPECT_EQ(after - constants->head_offsets.begin() - 1, located["head"].get<std::ptrdiff_t>()) << row;
    }
  }
}

TEST(QwenPleGolden, CasesGiveTheirRowsAndHistories) {
  EXPECT_EQ(test::check_cases(qwen_models()), (test::GoldenCounts{.cases = 86, .chunked = 8, .speculative = 1}));
}

TEST(QwenPleGolden, LongSequencesGiveTheDigests) { EXPECT_EQ(test::check_digests(qwen_models()), 13U); }

TEST(QwenPleGolden, TheReleasedConfigurationIsTheFirstEntry) {
  const QwenPleConfig expected = qwen_config_of(test::golden("qwen_ple.json")["configs"][0]["config"]);
  const QwenPleConfig released = released_qwen_ple();
  EXPECT_EQ(released.vocab_size, expected.vocab_size);
  EXPECT_EQ(released.eos_token_id, expected.eos_token_id);
  EXPECT_EQ(released.image_token_id, 248056);
  EXPECT_EQ(*derive_qwen_ple(released), *derive_qwen_ple(expected));
}

}  // namespace
}  // namespace rowtide
