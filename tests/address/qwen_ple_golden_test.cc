// Everything in golden/qwen_ple.json: constants, cases, digests of long sequences.
#include <gtest/gtest.h>

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "address/qwen_ple.h"
#include "address/splitmix64.h"
#include "base/sha256.h"
#include "support/golden.h"

namespace rowtide {
namespace {

using nlohmann::json;
using Rows = std::vector<std::vector<RowId>>;

struct GoldenModel {
  json entry;
  QwenPleConfig config;
  QwenPleConstants constants;
  std::shared_ptr<const Addressing> addressing;
};

QwenPleConfig config_of(const json& config) {
  return {.vocab_size = config["vocab_size"],
          .eos_token_id = config["eos_token_id"],
          .image_token_id = std::nullopt,
          .seed = test::golden_u64(config["seed"]),
          .base = config["ngram_vocab_size_base"],
          .ngram_size = config["ngram_size"],
          .heads_per_order = config["heads_per_ngram"],
          .dense_index = config["dense_ple_index"]};
}

std::vector<GoldenModel> golden_models() {
  std::vector<GoldenModel> models;
  const json file = test::golden("qwen_ple.json");
  for (const json& entry : file["configs"]) {
    const QwenPleConfig config = config_of(entry["config"]);
    auto constants = derive_qwen_ple(config);
    EXPECT_TRUE(constants.ok()) << entry["name"] << ": " << constants.error().message;
    if (constants.ok()) models.push_back({entry, config, *constants, make_qwen_ple(config, *constants)});
  }
  EXPECT_EQ(models.size(), 6U);
  return models;
}

Rows rows_of(const Addressing& addressing, std::span<const TokenId> tokens, History& history) {
  const std::size_t width = addressing.rows_per_token();
  std::vector<RowId> ids(tokens.size() * width);
  addressing.rows(tokens, history, ids);
  Rows rows;
  for (auto at = ids.begin(); at != ids.end(); at += static_cast<std::ptrdiff_t>(width)) {
    rows.emplace_back(at, at + static_cast<std::ptrdiff_t>(width));
  }
  return rows;
}

History history_before(const GoldenModel& model, const json& test_case) {
  return test_case.contains("history") ? test_case["history"].get<History>() : model.addressing->start();
}

void check_whole(const GoldenModel& model, const json& test_case) {
  const auto tokens = test_case["tokens"].get<std::vector<TokenId>>();
  History history = history_before(model, test_case);
  EXPECT_EQ(rows_of(*model.addressing, tokens, history), test_case["rows"].get<Rows>());
  EXPECT_EQ(history, test_case["history_after"].get<History>());
}

void check_chunks(const GoldenModel& model, const json& test_case) {
  const auto tokens = test_case["tokens"].get<std::vector<TokenId>>();
  const auto lengths = test_case["chunk_lengths"].get<std::vector<std::size_t>>();
  History history = history_before(model, test_case);
  std::span<const TokenId> left = tokens;
  Rows rows;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    const Rows chunk = rows_of(*model.addressing, left.first(lengths[i]), history);
    rows.insert(rows.end(), chunk.begin(), chunk.end());
    left = left.subspan(lengths[i]);
    EXPECT_EQ(history, test_case["history_after_each_chunk"][i].get<History>()) << "after chunk " << i;
  }
  EXPECT_TRUE(left.empty());
  EXPECT_EQ(rows, test_case["rows"].get<Rows>());
}

// A step hashes all its tokens; only the accepted ones stay in the history.
void check_steps(const GoldenModel& model, const json& test_case) {
  History history = history_before(model, test_case);
  for (const json& step : test_case["steps"]) {
    const auto tokens = step["tokens"].get<std::vector<TokenId>>();
    History drafted = history;
    EXPECT_EQ(rows_of(*model.addressing, tokens, drafted), step["rows"].get<Rows>());
    rows_of(*model.addressing, std::span(tokens).first(step["accepted"].get<std::size_t>()), history);
    EXPECT_EQ(history, step["history_after"].get<History>());
  }
}

TEST(QwenPleGolden, ConstantsAreDerived) {
  for (const GoldenModel& model : golden_models()) {
    SCOPED_TRACE(model.entry["name"]);
    const json& derived = model.entry["derived"];
    EXPECT_EQ(model.constants.multipliers, test::golden_u64s(derived["layer_multipliers"]));
    EXPECT_EQ(model.constants.head_sizes, test::golden_u64s(derived["ngram_heads_vocab_sizes"]));
    EXPECT_EQ(model.constants.head_offsets, test::golden_u64s(derived["ngram_heads_offsets"]));
    EXPECT_EQ(model.addressing->row_count(), derived["rows_used"].get<std::uint64_t>());
    EXPECT_EQ(model.addressing->rows_per_token(), derived["total_heads"].get<std::size_t>());

    std::uint64_t state = model.config.seed + 10007 * model.config.dense_index;
    for (const std::uint64_t expected : test::golden_u64s(derived["splitmix64_values"])) {
      EXPECT_EQ(splitmix64(state += kSplitmix64Gamma), expected);
    }
  }
}

TEST(QwenPleGolden, RowsBelongToTheHeadsNamed) {
  for (const GoldenModel& model : golden_models()) {
    SCOPED_TRACE(model.entry["name"]);
    const auto& offsets = model.constants.head_offsets;
    for (const json& located : model.entry["derived"]["locate"]) {
      const RowId row = located["row"];
      EXPECT_EQ(row >= model.addressing->row_count(), located["head"].is_null()) << row;
      if (located["head"].is_null()) continue;
      const auto after = std::upper_bound(offsets.begin(), offsets.end(), row);
      EXPECT_EQ(after - offsets.begin() - 1, located["head"].get<std::ptrdiff_t>()) << row;
    }
  }
}

TEST(QwenPleGolden, CasesGiveTheirRowsAndHistories) {
  std::size_t cases = 0;
  std::size_t chunked = 0;
  std::size_t speculative = 0;
  for (const GoldenModel& model : golden_models()) {
    for (const json& test_case : model.entry["cases"]) {
      SCOPED_TRACE(model.entry["name"].get<std::string>() + ", " + test_case["name"].get<std::string>());
      ++cases;
      if (test_case.contains("steps")) {
        check_steps(model, test_case);
        ++speculative;
        continue;
      }
      check_whole(model, test_case);
      if (!test_case.contains("chunk_lengths")) continue;
      check_chunks(model, test_case);
      ++chunked;
    }
  }
  EXPECT_EQ(cases, 86U);
  EXPECT_EQ(chunked, 8U);
  EXPECT_EQ(speculative, 1U);
}

// The rules that the file states in words, by the digest's name.
TokenId digest_token(const std::string& name, std::uint64_t value, const QwenPleConfig& config) {
  const auto vocab = static_cast<std::uint64_t>(config.vocab_size);
  if (name == "with_eos" && (value >> 40) % 16 == 0) return config.eos_token_id;
  if (name == "small_set") return static_cast<TokenId>(value % 64 * (vocab / 64) + (value >> 32) % 2);
  return static_cast<TokenId>(value % vocab);
}

std::vector<TokenId> digest_tokens(const json& digest, const QwenPleConfig& config) {
  std::vector<TokenId> tokens;
  const std::uint64_t seed = test::golden_u64(digest["seed"]);
  for (std::uint64_t i = 0; i < digest["n"].get<std::uint64_t>(); ++i) {
    tokens.push_back(digest_token(digest["name"], splitmix64(seed + i * kSplitmix64Gamma), config));
  }
  return tokens;
}

template <class Number>
std::string digest_of(std::span<Number> numbers) {
  static_assert(sizeof(Number) == 8);
  return sha256_hex(std::as_bytes(numbers));
}

TEST(QwenPleGolden, LongSequencesGiveTheDigests) {
  std::size_t digests = 0;
  for (const GoldenModel& model : golden_models()) {
    for (const json& digest : model.entry["digests"]) {
      SCOPED_TRACE(model.entry["name"].get<std::string>() + ", " + digest["name"].get<std::string>());
      ++digests;
      std::vector<TokenId> tokens = digest_tokens(digest, model.config);
      ASSERT_EQ(tokens.size(), 20'000U);
      ASSERT_EQ(digest_of(std::span(tokens)), digest["tokens_sha256"].get<std::string>());

      const std::size_t width = model.addressing->rows_per_token();
      std::vector<RowId> ids(tokens.size() * width);
      History history = model.addressing->start();
      model.addressing->rows(tokens, history, ids);
      const std::span all(ids);
      EXPECT_EQ(digest_of(all.first(1000 * width)), digest["rows_sha256_first_1000"].get<std::string>());
      EXPECT_EQ(digest_of(all), digest["rows_sha256"].get<std::string>());
      EXPECT_EQ(std::vector<RowId>(ids.begin(), ids.begin() + width), digest["first_rows"].get<std::vector<RowId>>());
      EXPECT_EQ(std::vector<RowId>(ids.end() - width, ids.end()), digest["last_rows"].get<std::vector<RowId>>());
    }
  }
  EXPECT_EQ(digests, 13U);
}

TEST(QwenPleGolden, TheReleasedConfigurationIsTheFirstEntry) {
  const QwenPleConfig expected = golden_models().front().config;
  const QwenPleConfig released = released_qwen_ple();
  EXPECT_EQ(released.vocab_size, expected.vocab_size);
  EXPECT_EQ(released.eos_token_id, expected.eos_token_id);
  EXPECT_EQ(released.image_token_id, 248056);
  auto constants = derive_qwen_ple(released);
  ASSERT_TRUE(constants.ok());
  EXPECT_EQ(*constants, golden_models().front().constants);
}

}  // namespace
}  // namespace rowtide
