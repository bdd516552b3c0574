// Engram, LongCat and unigram addressing by example: what special ids do, and refusals.
#include <gtest/gtest.h>

#include <numeric>
#include <string>

#include "address/deepseek_engram.h"
#include "address/engram_demo.h"
#include "address/longcat.h"
#include "address/unigram.h"

namespace rowtide {
namespace {

using Made = std::shared_ptr<const Addressing>;

EngramConfig small_config() {
  return {.compressed_vocab_size = 6,
          .layer_ids = {1, 3},
          .base_per_order = {100, 100},
          .heads_per_order = 4,
          .pad_token_id = 2,
          .image_token_id = 7};
}

TokenMap map_of(std::vector<std::int32_t> ids) {
  return std::make_shared<const std::vector<std::int32_t>>(std::move(ids));
}

/// Ids 0 to 5 are themselves, 6 is what 5 is, 7 (the image) has an entry too, as every tokenizer id has.
TokenMap small_map() { return map_of({0, 1, 2, 3, 4, 5, 5, 0}); }

std::vector<RowId> rows_with(const Addressing& addressing, std::vector<TokenId> tokens, History history = {}) {
  std::vector<RowId> ids(tokens.size() * addressing.rows_per_token());
  addressing.rows(tokens, history, ids);
  return ids;
}

std::vector<RowId> last_rows(const Addressing& addressing, std::vector<TokenId> tokens, History history = {}) {
  const std::vector<RowId> ids = rows_with(addressing, std::move(tokens), std::move(history));
  return {ids.end() - static_cast<std::ptrdiff_t>(addressing.rows_per_token()), ids.end()};
}

Made deepseek(const TokenMap& map = small_map()) {
  const EngramConfig config = small_config();
  return *make_deepseek_engram(config, derive_engram(config)->front(), map);
}

Made demo(const TokenMap& map = small_map()) {
  const EngramConfig config = small_config();
  return *make_engram_demo(config, derive_engram(config)->front(), map);
}

TEST(DeepseekEngram, DescribesItself) {
  EngramConfig config = released_deepseek_engram();
  const Made made = *make_deepseek_engram(config, derive_engram(config)->back(), nullptr);
  EXPECT_EQ(made->family(), "deepseek_engram");
  EXPECT_EQ(std::vector(made->orders().begin(), made->orders().end()), (std::vector<std::uint32_t>{2, 3, 4}));
  EXPECT_EQ(made->heads_per_order(), 8U);
  EXPECT_EQ(made->row_count(), 384'016'682U);
  EXPECT_EQ(made->history_tokens(), 3U);
  EXPECT_EQ(made->start(), (History{-1, -1, -1}));
}

TEST(DeepseekEngram, DeadTokensHideWhatIsOlder) {
  const Made made = deepseek();
  const std::vector<RowId> alone = rows_with(*made, {4});
  for (const TokenId dead : {TokenId{-1}, TokenId{7}, TokenId{-2}, TokenId{8}, INT64_MAX, INT64_MIN}) {
    SCOPED_TRACE(dead);
    EXPECT_EQ(last_rows(*made, {5, 3, dead, 4}), alone);
    EXPECT_EQ(last_rows(*made, {4}, {3, dead}), alone);
    EXPECT_EQ(last_rows(*made, {5, 3, dead}), rows_with(*made, {2})) << "hashed as pad alone";
  }
  EXPECT_NE(last_rows(*made, {5, 3, 0, 4}), alone);
}

TEST(DeepseekEngram, TokensOfOneCompressedIdHaveTheSameRows) {
  const Made made = deepseek();
  EXPECT_EQ(rows_with(*made, {1, 6, 4, 5}), rows_with(*made, {1, 5, 4, 6}));
  EXPECT_EQ(rows_with(*made, {1, 6, 4}), rows_with(*deepseek(nullptr), {1, 5, 4}));
}

TEST(DeepseekEngram, HistoriesKeepTokenizerIds) {
  History history = {0, 6};
  std::vector<RowId> ids(16);
  deepseek()->rows(std::vector<TokenId>{7, 6}, history, ids);
  EXPECT_EQ(history, (History{7, 6}));
}

// Tokenizer ids of images mean nothing where ids are compressed already.
TEST(DeepseekEngram, WithTheIdentityAnImageIsMinusOne) {
  EngramConfig config = small_config();
  config.image_token_id = 3;
  const Made made = *make_deepseek_engram(config, derive_engram(config)->front(), nullptr);
  EXPECT_EQ(made->image_token_id(), -1);
  EXPECT_NE(rows_with(*made, {1, 3}), rows_with(*made, {1, -1}));
  EXPECT_EQ(deepseek()->image_token_id(), 7);
  config.image_token_id.reset();
  EXPECT_EQ((*make_deepseek_engram(config, derive_engram(config)->front(), nullptr))->image_token_id(), std::nullopt);
}

TEST(EngramDemo, ReadsIdsBeyondTheMapAsItsLast) {
  EXPECT_EQ(rows_with(*demo(), {3, 8}), rows_with(*demo(), {3, 7}));
  EXPECT_EQ(rows_with(*demo(), {3, INT64_MAX}), rows_with(*demo(), {3, 7}));
  EXPECT_EQ(rows_with(*demo(nullptr), {3, 6}), rows_with(*demo(nullptr), {3, 5}));
  EXPECT_EQ(demo()->start(), (History{2, 2}));
  EXPECT_EQ(demo()->image_token_id(), std::nullopt);
}

TEST(Longcat, DescribesItself) {
  const Made made = make_longcat(released_longcat(), *derive_longcat(released_longcat()));
  EXPECT_EQ(made->family(), "longcat");
  EXPECT_EQ(made->rows_per_token(), 12U);
  EXPECT_EQ(made->row_count(), 122'683'536U);
  EXPECT_EQ(made->start(), (History{2, 2, 2}));
}

// The rule of known ids continued: signed 64-bit sums, floor modulo.
TEST(Longcat, IdsOutsideTheVocabularyEnterTheSumsAsTheyAre) {
  const LongcatConstants constants = *derive_longcat(released_longcat());
  const Made made = make_longcat(released_longcat(), constants);
  EXPECT_EQ(rows_with(*made, {-1})[0], constants.head_sizes[0] - 1);
  EXPECT_EQ(rows_with(*made, {1, -1})[12], 131'072U - 1);
  EXPECT_EQ(rows_with(*made, {200'000})[0], 200'000U);
}

TEST(Unigram, IsTheTokenIdOrRowZero) {
  const Made made = *make_unigram(released_unigram());
  EXPECT_EQ(made->family(), "unigram");
  EXPECT_EQ(made->row_count(), 262'144U);
  EXPECT_EQ(made->rows_per_token(), 1U);
  EXPECT_EQ(made->orders()[0], 1U);
  History history = {5};
  std::vector<RowId> ids(6);
  made->rows(std::vector<TokenId>{0, 17, 262'143, 262'144, -1, INT64_MIN}, history, ids);
  EXPECT_EQ(ids, (std::vector<RowId>{0, 17, 262'143, 0, 0, 0}));
  EXPECT_EQ(history, History{});
}

template <class Value>
void expect_refused(const Result<Value>& result, ErrorCode code, const std::vector<std::string>& words) {
  ASSERT_FALSE(result.ok()) << words.front();
  EXPECT_EQ(result.error().code, code) << result.error().message;
  for (const std::string& word : words) {
    EXPECT_NE(result.error().message.find(word), std::string::npos) << result.error().message;
  }
}

template <class Config, class Value, class Derive>
void refuse(Config config, Value Config::* field, Value value, Derive derive, const std::string& words) {
  config.*field = std::move(value);
  expect_refused(derive(config), ErrorCode::kUsage, {words});
}

TEST(Engram, RefusesConfigurationsNoModelCanHave) {
  using C = EngramConfig;
  const auto derive = [](const C& config) { return derive_engram(config); };
  ASSERT_TRUE(derive_engram(small_config()).ok());
  refuse(small_config(), &C::compressed_vocab_size, std::int64_t{0}, derive, "compressed_vocab_size 0");
  refuse(small_config(), &C::compressed_vocab_size, (std::int64_t{1} << 29) + 1, derive,
         "compressed_vocab_size 536870913");
  refuse(small_config(), &C::layer_ids, {}, derive, "layer_ids []");
  refuse(small_config(), &C::layer_ids, {4, 2, 4}, derive, "layer_ids 4");
  refuse(small_config(), &C::base_per_order, {}, derive, "max_ngram_size 1");
  refuse(small_config(), &C::base_per_order, {8, 9, 9, 9, 9, 9, 9, 9}, derive, "max_ngram_size 9");
  refuse(small_config(), &C::base_per_order, {0, 7}, derive, "base 0");
  refuse(small_config(), &C::base_per_order, {7, UINT64_MAX}, derive, "base 18446744073709551615");
  refuse(small_config(), &C::heads_per_order, 0U, derive, "heads_per_order 0");
  refuse(small_config(), &C::heads_per_order, 65U, derive, "heads_per_order 65");
  refuse(small_config(), &C::seed, UINT64_MAX, derive, "seed 18446744073709551615");
  std::vector<std::uint32_t> many(513);
  std::iota(many.begin(), many.end(), 0U);
  refuse(small_config(), &C::layer_ids, many, derive, "(of 513 layers)");
}

// Heads of at least this size fit by the smallest possible sum, but not by the primes that follow.
TEST(Engram, RefusesRowIdsThatOverflow) {
  EngramConfig config = small_config();
  config.base_per_order = {INT64_MAX / 8, INT64_MAX / 8};
  expect_refused(derive_engram(config), ErrorCode::kUsage, {"base 1152921504606846975"});
}

TEST(Engram, RefusesTheMapOfAnotherTokenizer) {
  const EngramConfig config = small_config();
  const XorConstants constants = derive_engram(config)->front();
  const auto make = [&](std::vector<std::int32_t> ids) {
    return make_deepseek_engram(config, constants, map_of(std::move(ids)));
  };
  expect_refused(make({0, 1, 2, 3, 4}), ErrorCode::kMismatch, {"5 compressed ids", "hashed for 6"});
  expect_refused(make({0, 1, 2, 3, 4, 5, 6}), ErrorCode::kMismatch, {"7 compressed ids", "hashed for 6"});
  expect_refused(make({}), ErrorCode::kMismatch, {"0 compressed ids"});
  expect_refused(make({0, 1, 3, 2, 4, 5}), ErrorCode::kMalformed, {"token 2", "compressed id 3"});
  expect_refused(make({0, 1, -1, 2, 3, 4, 5}), ErrorCode::kMalformed, {"token 2", "compressed id -1"});
  expect_refused(make_engram_demo(config, constants, map_of({0, 1})), ErrorCode::kMismatch, {"2 compressed ids"});
}

TEST(Engram, RefusesAPadTokenThatHasNoEntry) {
  EngramConfig config = small_config();
  for (const TokenId pad : {-1, 8}) {
    config.pad_token_id = pad;
    const XorConstants constants = derive_engram(config)->front();
    expect_refused(make_deepseek_engram(config, constants, small_map()), ErrorCode::kMismatch, {"pad_token_id"});
    expect_refused(make_engram_demo(config, constants, nullptr), ErrorCode::kMismatch, {"pad_token_id"});
  }
}

TEST(Longcat, RefusesConfigurationsNoModelCanHave) {
  using C = LongcatConfig;
  const auto derive = [](const C& config) { return derive_longcat(config); };
  refuse(released_longcat(), &C::vocab_size, std::int64_t{0}, derive, "vocab_size 0");
  refuse(released_longcat(), &C::ngram_size, 1U, derive, "ngram_size 1");
  refuse(released_longcat(), &C::ngram_size, 9U, derive, "ngram_size 9");
  refuse(released_longcat(), &C::heads_per_order, 0U, derive, "heads_per_order 0");
  refuse(released_longcat(), &C::heads_per_order, 65U, derive, "heads_per_order 65");
  refuse(released_longcat(), &C::size_ratio, std::uint64_t{0}, derive, "size_ratio 0");
  refuse(released_longcat(), &C::size_ratio, UINT64_MAX, derive, "size_ratio 18446744073709551615");
  refuse(released_longcat(), &C::vocab_size, INT64_MAX, derive, "size_ratio 78");
}

TEST(Unigram, PositionsOfImagesAndSoundReadThePadRow) {
  const Made made = *make_unigram({100, 50, {51, 200}, 3});
  EXPECT_EQ(rows_with(*made, {49, 50, 51, 52, 200, 100}), (std::vector<RowId>{49, 3, 3, 52, 3, 0}));
  EXPECT_EQ(made->image_token_id(), 50);
  expect_refused(make_unigram({100, {}, {}, 100}), ErrorCode::kUsage, {"pad_token_id 100", "100 tokens"});
}

TEST(Unigram, RefusesAnEmptyVocabulary) {
  expect_refused(make_unigram({0, {}, {}}), ErrorCode::kUsage, {"vocab_size 0"});
  expect_refused(make_unigram({-1, {}, {}}), ErrorCode::kUsage, {"vocab_size -1"});
}

}  // namespace
}  // namespace rowtide
