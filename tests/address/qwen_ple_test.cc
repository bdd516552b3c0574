// Properties of qwen_ple addressing that hold for every model, and refusals.
#include "address/qwen_ple.h"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <string>

namespace rowtide {
namespace {

using Random = std::mt19937_64;

struct PleModel {
  QwenPleConfig config;
  QwenPleConstants constants;
  std::shared_ptr<const Addressing> addressing;
};

PleModel make_qwen(const QwenPleConfig& config) {
  auto constants = derive_qwen_ple(config);
  EXPECT_TRUE(constants.ok()) << constants.error().message;
  return {config, *constants, make_qwen_ple(config, *constants)};
}

PleModel random_model(Random& random) {
  QwenPleConfig config{.vocab_size = static_cast<std::int64_t>(1 + random() % 300'000),
                       .eos_token_id = 0,
                       .image_token_id = std::nullopt,
                       .seed = random(),
                       .base = 1 + random() % 50'000,
                       .ngram_size = static_cast<std::uint32_t>(2 + random() % 7),
                       .heads_per_order = static_cast<std::uint32_t>(1 + random() % 9),
                       .dense_index = static_cast<std::uint32_t>(random() % 3)};
  config.eos_token_id = static_cast<TokenId>(random() % static_cast<std::uint64_t>(config.vocab_size));
  return make_qwen(config);
}

// Known ids, many EOS, and now and then an id from anywhere in 64 bits.
std::vector<TokenId> random_tokens(Random& random, const QwenPleConfig& config, std::size_t count) {
  std::vector<TokenId> tokens(count);
  for (TokenId& token : tokens) {
    const std::uint64_t draw = random();
    token = static_cast<TokenId>(draw % static_cast<std::uint64_t>(config.vocab_size));
    if (draw >> 61 == 0) token = config.eos_token_id;
    if (draw >> 60 == 15) token = static_cast<TokenId>(random());
  }
  return tokens;
}

std::vector<RowId> rows_after(const Addressing& addressing, std::span<const TokenId> tokens, History& history) {
  std::vector<RowId> ids(tokens.size() * addressing.rows_per_token());
  addressing.rows(tokens, history, ids);
  return ids;
}

// The definition, word for word: look back from each position, everything at or behind the first EOS is
// EOS, multiply, XOR, floor modulo.
std::vector<RowId> rows_by_definition(const PleModel& model, const std::vector<TokenId>& sequence, std::size_t from) {
  std::vector<RowId> ids;
  for (std::size_t i = from; i < sequence.size(); ++i) {
    std::uint64_t mix = static_cast<std::uint64_t>(sequence[i]) * model.constants.multipliers[0];
    bool cut = false;
    for (std::size_t back = 1; back < model.config.ngram_size; ++back) {
      cut = cut || i < back || sequence[i - back] == model.config.eos_token_id;
      const TokenId token = cut ? model.config.eos_token_id : sequence[i - back];
      mix ^= static_cast<std::uint64_t>(token) * model.constants.multipliers[back];
      for (std::size_t head = 0; head < model.config.heads_per_order; ++head) {
        const std::size_t index = (back - 1) * model.config.heads_per_order + head;
        const auto size = static_cast<std::int64_t>(model.constants.head_sizes[index]);
        const std::int64_t rest = static_cast<std::int64_t>(mix) % size;
        ids.push_back(static_cast<RowId>(rest < 0 ? rest + size : rest) + model.constants.head_offsets[index]);
      }
    }
  }
  return ids;
}

TEST(QwenPle, FollowsTheDefinition) {
  Random random(11);
  for (int i = 0; i < 300; ++i) {
    const PleModel model = random_model(random);
    const std::vector<TokenId> tokens = random_tokens(random, model.config, random() % 60);
    History history = model.addressing->start();
    const std::vector<RowId> ids = rows_after(*model.addressing, tokens, history);
    ASSERT_EQ(ids, rows_by_definition(model, tokens, 0)) << "model " << i;
    for (const RowId id : ids) ASSERT_LT(id, model.addressing->row_count());
  }
}

TEST(QwenPle, AnySplitGivesTheSameRowsAndHistory) {
  Random random(12);
  for (int i = 0; i < 300; ++i) {
    const PleModel model = random_model(random);
    const std::vector<TokenId> tokens = random_tokens(random, model.config, 1 + random() % 40);
    History whole_history = model.addressing->start();
    const std::vector<RowId> whole = rows_after(*model.addressing, tokens, whole_history);

    History history;
    std::vector<RowId> ids;
    std::span<const TokenId> left = tokens;
    while (!left.empty()) {
      const std::size_t length = random() % (std::min<std::size_t>(left.size(), 7) + 1);  // often empty
      const std::vector<RowId> chunk = rows_after(*model.addressing, left.first(length), history);
      ids.insert(ids.end(), chunk.begin(), chunk.end());
      left = left.subspan(length);
    }
    ASSERT_EQ(ids, whole) << "model " << i;
    ASSERT_EQ(history, whole_history) << "model " << i;
  }
}

TEST(QwenPle, OnlyTheLastIdsOfALongHistoryCount) {
  Random random(13);
  for (int i = 0; i < 100; ++i) {
    const PleModel model = random_model(random);
    const std::size_t past = random() % 20;
    const std::vector<TokenId> sequence = random_tokens(random, model.config, past + 5);
    History history(sequence.begin(), sequence.begin() + static_cast<std::ptrdiff_t>(past));
    const auto tokens = std::span(sequence).subspan(past);
    ASSERT_EQ(rows_after(*model.addressing, tokens, history), rows_by_definition(model, sequence, past));
    ASSERT_EQ(history.size(), model.addressing->history_tokens());
  }
}

TEST(QwenPle, AShortHistoryIsASequenceStart) {
  const PleModel model = make_qwen(released_qwen_ple());
  const std::vector<TokenId> tokens = {9707, 11, 1879};
  History none;
  History start = model.addressing->start();
  EXPECT_EQ(start, (History{248044, 248044}));
  EXPECT_EQ(rows_after(*model.addressing, tokens, none), rows_after(*model.addressing, tokens, start));

  History one = {5};
  History padded = {248044, 5};
  EXPECT_EQ(rows_after(*model.addressing, tokens, one), rows_after(*model.addressing, tokens, padded));
  EXPECT_EQ(one, (History{11, 1879}));
}

TEST(QwenPle, AnEmptyChunkCompletesTheHistory) {
  const PleModel model = make_qwen(released_qwen_ple());
  History history = {7};
  model.addressing->rows({}, history, {});
  EXPECT_EQ(history, (History{248044, 7}));
}

TEST(QwenPle, AnImageCostsFortyDistinctRows) {
  const PleModel model = make_qwen(released_qwen_ple());
  const TokenId image = model.addressing->image_token_id().value();
  std::vector<TokenId> tokens(101, image);
  tokens[0] = 248053;
  History history = model.addressing->start();
  const std::vector<RowId> ids = rows_after(*model.addressing, tokens, history);
  EXPECT_EQ(std::set<RowId>(ids.begin() + 16, ids.end()).size(), 40U);
}

TEST(QwenPle, DescribesItself) {
  const PleModel model = make_qwen(released_qwen_ple());
  EXPECT_EQ(model.addressing->family(), "qwen_ple");
  const auto orders = model.addressing->orders();
  EXPECT_EQ(std::vector<std::uint32_t>(orders.begin(), orders.end()), (std::vector<std::uint32_t>{2, 3}));
  EXPECT_EQ(model.addressing->heads_per_order(), 8U);
  EXPECT_EQ(model.addressing->rows_per_token(), 16U);
  EXPECT_EQ(model.addressing->history_tokens(), 2U);
  EXPECT_EQ(model.addressing->row_count(), 320'001'446U);
}

QwenPleConfig small_ple_config() {
  return {.vocab_size = 512,
          .eos_token_id = 5,
          .image_token_id = std::nullopt,
          .base = 2048,
          .ngram_size = 3,
          .heads_per_order = 8};
}

void expect_config_refused(const QwenPleConfig& config, const std::string& named) {
  auto constants = derive_qwen_ple(config);
  ASSERT_FALSE(constants.ok()) << named;
  EXPECT_EQ(constants.error().code, ErrorCode::kUsage) << named;
  EXPECT_NE(constants.error().message.find(named), std::string::npos) << constants.error().message;
}

template <class Field, class Value>
QwenPleConfig with(Field field, Value value) {
  QwenPleConfig config = small_ple_config();
  config.*field = value;
  return config;
}

TEST(QwenPle, RefusesConfigurationsNoModelCanHave) {
  ASSERT_TRUE(derive_qwen_ple(small_ple_config()).ok());
  expect_config_refused(with(&QwenPleConfig::vocab_size, 0), "vocab_size 0");
  expect_config_refused(with(&QwenPleConfig::vocab_size, -3), "vocab_size -3");
  expect_config_refused(with(&QwenPleConfig::ngram_size, 0), "ngram_size 0");
  expect_config_refused(with(&QwenPleConfig::ngram_size, 1), "ngram_size 1");
  expect_config_refused(with(&QwenPleConfig::ngram_size, 9), "ngram_size 9");
  expect_config_refused(with(&QwenPleConfig::heads_per_order, 0), "heads_per_order 0");
  expect_config_refused(with(&QwenPleConfig::heads_per_order, 65), "heads_per_order 65");
  expect_config_refused(with(&QwenPleConfig::dense_index, 256), "dense_index 256");
  expect_config_refused(with(&QwenPleConfig::dense_index, UINT32_MAX), "dense_index 4294967295");
  expect_config_refused(with(&QwenPleConfig::base, 0), "base 0");
  expect_config_refused(with(&QwenPleConfig::base, UINT64_MAX), "base 18446744073709551615");
}

// 16 heads of at least this size fit by the smallest possible sum, but not by the primes that follow.
TEST(QwenPle, RefusesRowIdsThatOverflow) {
  expect_config_refused(with(&QwenPleConfig::base, static_cast<std::uint64_t>(INT64_MAX) / 16),
                        "base 576460752303423487");
  EXPECT_TRUE(derive_qwen_ple(with(&QwenPleConfig::base, static_cast<std::uint64_t>(INT64_MAX) / 17)).ok());
}

// Beyond 2^61 words the bound of the multipliers falls to 1, not to 0.
TEST(QwenPle, TheLargestVocabularyHasMultipliersOfOne) {
  auto constants = derive_qwen_ple(with(&QwenPleConfig::vocab_size, INT64_MAX));
  ASSERT_TRUE(constants.ok());
  EXPECT_EQ(constants->multipliers, (std::vector<std::uint64_t>{1, 1, 1}));
}

TEST(QwenPle, TheLastTableOfAModelIsDerivedToo) {
  auto constants = derive_qwen_ple(with(&QwenPleConfig::dense_index, 255));
  ASSERT_TRUE(constants.ok());
  EXPECT_EQ(constants->head_offsets.front(), 0U);
  EXPECT_GT(constants->head_sizes.front(), 2153U);
}

}  // namespace
}  // namespace rowtide
