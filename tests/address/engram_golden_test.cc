// Everything in golden/deepseek_engram_v41.json and golden/engram_demo.json: random numbers, constants, cases, digests.
#include <gtest/gtest.h>

#include <fstream>

#include "address/deepseek_engram.h"
#include "address/engram_demo.h"
#include "address/pcg64.h"
#include "support/golden_addressing.h"

namespace rowtide {
namespace {

using nlohmann::json;
using test::GoldenModel;

using Make = Result<std::shared_ptr<const Addressing>> (*)(const EngramConfig&, const XorConstants&, TokenMap);

EngramConfig engram_config_of(const json& config) {
  EXPECT_EQ(config["max_ngram_size"].get<std::size_t>(), config["base_per_order"].size() + 1);
  return {.compressed_vocab_size = config["compressed_vocab_size"],
          .layer_ids = config["layer_ids"],
          .base_per_order = config["base_per_order"],
          .heads_per_order = config["n_heads"],
          .pad_token_id = config["compressed_pad_id"],
          .seed = test::golden_u64(config["seed"]),
          .image_token_id = std::nullopt};
}

GoldenModel make_model(const json& entry, const EngramConfig& config, Make make, const TokenMap& map) {
  GoldenModel model{.entry = entry,
                    .tables = {},
                    .column_offsets = {},
                    .vocab_size = static_cast<std::uint64_t>(config.compressed_vocab_size),
                    .special_id = -1};
  auto constants = derive_engram(config);
  EXPECT_TRUE(constants.ok()) << model.name() << ": " << constants.error().message;
  for (const XorConstants& layer : *constants) {
    auto table = make(config, layer, map);
    EXPECT_TRUE(table.ok()) << model.name() << ": " << table.error().message;
    model.tables.push_back(*table);
  }
  return model;
}

std::vector<GoldenModel> golden_models(const std::string& file, Make make) {
  std::vector<GoldenModel> models;
  const json content = test::golden(file);
  for (const json& entry : content["configs"]) {
    models.push_back(make_model(entry, engram_config_of(entry["config"]), make, nullptr));
  }
  return models;
}

std::vector<GoldenModel> deepseek_models() { return golden_models("deepseek_engram_v41.json", make_deepseek_engram); }
std::vector<GoldenModel> demo_models() { return golden_models("engram_demo.json", make_engram_demo); }

TokenMap released_map() {
  std::ifstream file(ROWTIDE_SOURCE_DIR "/tests/golden/deepseek_v41_token_map.i32le", std::ios::binary);
  std::vector<std::int32_t> map(129'280);
  file.read(reinterpret_cast<char*>(map.data()), static_cast<std::streamsize>(map.size() * sizeof(map[0])));
  EXPECT_TRUE(file.good());
  return std::make_shared<const std::vector<std::int32_t>>(std::move(map));
}

void check_constants(const std::vector<GoldenModel>& models) {
  for (const GoldenModel& model : models) {
    SCOPED_TRACE(model.name());
    const json& derived = model.entry["derived"];
    const EngramConfig config = engram_config_of(model.entry["config"]);
    EXPECT_EQ(multiplier_bound(config.compressed_vocab_size), test::golden_u64(derived["multiplier_bound"]));
    auto constants = derive_engram(config);
    ASSERT_TRUE(constants.ok());
    ASSERT_EQ(constants->size(), derived["layers"].size());
    std::uint64_t rows = 0;
    for (std::size_t i = 0; i < constants->size(); ++i) {
      const json& layer = derived["layers"][i];
      EXPECT_EQ(config.layer_ids[i], layer["layer_id"].get<std::uint32_t>());
      EXPECT_EQ((*constants)[i].multipliers, test::golden_u64s(layer["multipliers"]));
      EXPECT_EQ((*constants)[i].head_sizes, test::golden_u64s(layer["primes"]));
      EXPECT_EQ((*constants)[i].head_offsets, test::golden_u64s(layer["offsets"]));
      EXPECT_EQ(model.tables[i]->row_count(), layer["rows"].get<std::uint64_t>());
      rows += model.tables[i]->row_count();
    }
    EXPECT_EQ(rows, derived["total_rows"].get<std::uint64_t>());
  }
}

TEST(EngramGolden, RandomNumbersAreThoseOfNumpy) {
  const json prng = test::golden("engram_demo.json")["prng"];
  EXPECT_GE(prng.size(), 4U);
  for (const json& seed : prng) {
    SCOPED_TRACE(seed["seed"]);
    const std::uint64_t value = test::golden_u64(seed["seed"]);
    const auto words = seed_sequence_words(value);
    EXPECT_EQ(std::vector(words.begin(), words.end()), test::golden_u64s(seed["seed_words_u64"]));
    Pcg64 raw(value);
    for (const std::uint64_t expected : test::golden_u64s(seed["first_raw_u64"])) EXPECT_EQ(raw.next(), expected);
    for (const json& bounded : seed["bounded"]) {
      Pcg64 random(value);
      for (const std::uint64_t expected : test::golden_u64s(bounded["draws"])) {
        EXPECT_EQ(random.below(test::golden_u64(bounded["bound"])), expected);
      }
    }
  }
}

TEST(DeepseekEngramGolden, ConstantsAreDerived) { check_constants(deepseek_models()); }
TEST(EngramDemoGolden, ConstantsAreDerived) { check_constants(demo_models()); }

TEST(DeepseekEngramGolden, CasesGiveTheirRowsAndHistories) {
  EXPECT_EQ(test::check_cases(deepseek_models()), (test::GoldenCounts{.cases = 58, .chunked = 7, .speculative = 1}));
}

TEST(EngramDemoGolden, CasesGiveTheirRowsAndHistories) {
  EXPECT_EQ(test::check_cases(demo_models()), (test::GoldenCounts{.cases = 53, .chunked = 8, .speculative = 0}));
}

TEST(DeepseekEngramGolden, LongSequencesGiveTheDigests) {
  EXPECT_EQ(test::check_digests(deepseek_models(), "raw_ids_through_map"), 9U);
}

TEST(EngramDemoGolden, LongSequencesGiveTheDigests) { EXPECT_EQ(test::check_digests(demo_models()), 8U); }

GoldenModel released_model(const EngramConfig& config) {
  return make_model(test::golden("deepseek_engram_v41.json")["configs"][0], config, make_deepseek_engram,
                    released_map());
}

TEST(DeepseekEngramGolden, TokenizerIdsGoThroughTheMap) {
  const GoldenModel model = released_model(released_deepseek_engram());
  std::size_t cases = 0;
  for (const json& test_case : model.entry["cases"]) {
    if (!test_case.contains("raw_tokens")) continue;
    SCOPED_TRACE(test_case["name"]);
    ++cases;
    const auto tokens = test_case["raw_tokens"].get<std::vector<TokenId>>();
    History history;
    EXPECT_EQ(test::rows_of(model, tokens, history), test::golden_rows(test_case["rows"]));
    EXPECT_EQ(history, History(tokens.end() - 3, tokens.end()));
  }
  EXPECT_EQ(cases, 2U);
}

TEST(DeepseekEngramGolden, ALongSequenceOfTokenizerIdsGivesTheDigest) {
  EngramConfig config = released_deepseek_engram();
  config.image_token_id.reset();  // that id is one of those drawn, and the digest takes it for ordinary
  const GoldenModel model = released_model(config);
  const TokenMap map = released_map();
  std::size_t digests = 0;
  for (const json& digest : model.entry["digests"]) {
    if (digest["name"] != "raw_ids_through_map") continue;
    ++digests;
    std::vector<TokenId> tokens, compressed;
    for (std::uint64_t i = 0; i < 20'000; ++i) {
      tokens.push_back(splitmix64(test::golden_u64(digest["seed"]) + i * kSplitmix64Gamma) % map->size());
      compressed.push_back((*map)[static_cast<std::size_t>(tokens.back())]);
    }
    EXPECT_EQ(test::digest_of(std::span<const TokenId>(compressed)), digest["tokens_sha256"].get<std::string>());
    test::check_digest(model, digest, tokens);
  }
  EXPECT_EQ(digests, 1U);
}

void expect_same(const EngramConfig& released, const EngramConfig& golden) {
  EXPECT_EQ(released.compressed_vocab_size, golden.compressed_vocab_size);
  EXPECT_EQ(released.layer_ids, golden.layer_ids);
  EXPECT_EQ(released.base_per_order, golden.base_per_order);
  EXPECT_EQ(released.heads_per_order, golden.heads_per_order);
  EXPECT_EQ(released.pad_token_id, golden.pad_token_id);
  EXPECT_EQ(released.seed, golden.seed);
}

TEST(EngramGolden, TheReleasedConfigurationsAreTheFirstEntries) {
  expect_same(released_deepseek_engram(),
              engram_config_of(test::golden("deepseek_engram_v41.json")["configs"][0]["config"]));
  expect_same(released_engram_demo(), engram_config_of(test::golden("engram_demo.json")["configs"][0]["config"]));
}

}  // namespace
}  // namespace rowtide
