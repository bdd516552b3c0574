// Everything in golden/longcat.json: constants, cases, digests of long sequences. Its rows are local to an embedder.
#include <gtest/gtest.h>

#include "address/longcat.h"
#include "support/golden_addressing.h"

namespace rowtide {
namespace {

using nlohmann::json;
using test::GoldenModel;

LongcatConfig longcat_config_of(const json& config) {
  return {.vocab_size = config["vocab_size"],
          .eos_token_id = config["eos_token_id"],
          .size_ratio = config["ngram_vocab_size_ratio"],
          .ngram_size = config["emb_neighbor_num"],
          .heads_per_order = config["emb_split_num"]};
}

std::vector<GoldenModel> longcat_models() {
  std::vector<GoldenModel> models;
  const json file = test::golden("longcat.json");
  for (const json& entry : file["configs"]) {
    const LongcatConfig config = longcat_config_of(entry["config"]);
    auto constants = derive_longcat(config);
    EXPECT_TRUE(constants.ok()) << entry["name"] << ": " << constants.error().message;
    models.push_back({.entry = entry,
                      .tables = {make_longcat(config, *constants)},
                      .column_offsets = constants->head_offsets,
                      .vocab_size = static_cast<std::uint64_t>(config.vocab_size),
                      .special_id = config.eos_token_id});
  }
  return models;
}

TEST(LongcatGolden, ConstantsAreDerived) {
  for (const GoldenModel& model : longcat_models()) {
    SCOPED_TRACE(model.name());
    const json& derived = model.entry["derived"];
    auto constants = derive_longcat(longcat_config_of(model.entry["config"]));
    ASSERT_TRUE(constants.ok());
    ASSERT_EQ(constants->head_sizes.size(), derived["tables"].size());
    for (std::size_t i = 0; i < constants->head_sizes.size(); ++i) {
      const json& table = derived["tables"][i];
      EXPECT_EQ(constants->head_sizes[i], table["rows"].get<std::uint64_t>());
      EXPECT_EQ(constants->head_offsets[i], table["offset_if_concatenated"].get<std::uint64_t>());
      EXPECT_EQ(constants->powers[i], test::golden_u64s(table["powers_mod"]));
      EXPECT_EQ(model.tables[0]->orders()[i / model.tables[0]->heads_per_order()], table["order"].get<std::uint32_t>());
    }
    EXPECT_EQ(model.tables[0]->row_count(), derived["total_rows"].get<std::uint64_t>());
  }
}

TEST(LongcatGolden, CasesGiveTheirRowsAndHistories) {
  EXPECT_EQ(test::check_cases(longcat_models()), (test::GoldenCounts{.cases = 58, .chunked = 7, .speculative = 1}));
}

TEST(LongcatGolden, LongSequencesGiveTheDigests) { EXPECT_EQ(test::check_digests(longcat_models()), 10U); }

TEST(LongcatGolden, TheReleasedConfigurationIsTheFirstEntry) {
  const LongcatConfig expected = longcat_config_of(test::golden("longcat.json")["configs"][0]["config"]);
  EXPECT_EQ(*derive_longcat(released_longcat()), *derive_longcat(expected));
  EXPECT_EQ(released_longcat().eos_token_id, expected.eos_token_id);
}

}  // namespace
}  // namespace rowtide
