// Vocabulary compression piece by piece, against golden/vocab_compression.json; a whole tokenizer: checkpoint/.
#include "address/vocab_compression.h"

#include <gtest/gtest.h>

#include "support/golden.h"

namespace rowtide {
namespace {

using nlohmann::json;
using Rule = VocabularyKey::Rule;

std::string rule_name(Rule rule) {
  switch (rule) {
    case Rule::kNormalised: return "normalised";
    case Rule::kText: return "text_because_normalised_is_empty";
    case Rule::kPiece: return "raw_piece";
  }
  return "";
}

TEST(VocabCompression, NormalisesAsTheExamplesDo) {
  const json examples = test::golden("vocab_compression.json")["normalise_examples"];
  EXPECT_EQ(examples.size(), 52U);
  for (const json& example : examples) {
    SCOPED_TRACE(example.dump());
    auto normalised = normalised_text(example["text"].get<std::string>());
    ASSERT_TRUE(normalised.ok()) << normalised.error().message;
    EXPECT_EQ(*normalised, example["normalised"].get<std::string>());
  }
}

TEST(VocabCompression, GivesTheKeysOfTheExamples) {
  const json examples = test::golden("vocab_compression.json")["examples"];
  EXPECT_EQ(examples.size(), 121U);
  for (const json& example : examples) {
    SCOPED_TRACE(example.dump());
    auto key = vocabulary_key(example["piece"].get<std::string>());
    ASSERT_TRUE(key.ok()) << key.error().message;
    EXPECT_EQ(key->text, example["key"].get<std::string>());
    EXPECT_EQ(rule_name(key->rule), example["rule"].get<std::string>());
  }
}

std::vector<std::int32_t> compressed(const std::vector<std::string>& pieces) {
  auto map = compress_vocabulary(pieces);
  EXPECT_TRUE(map.ok()) << map.error().message;
  return map ? **map : std::vector<std::int32_t>{};
}

TEST(VocabCompression, NumbersKeysByTheirFirstUse) {
  EXPECT_EQ(compressed({"b", "a", "B", "\u0120A", "c"}), (std::vector<std::int32_t>{0, 1, 0, 1, 2}));
  EXPECT_EQ(compressed({}), std::vector<std::int32_t>{});
  EXPECT_EQ(compressed({"", "\u0120", "\u010a\u010a", ""}), (std::vector<std::int32_t>{0, 1, 1, 0}));
}

// The lone byte 0xA1 keeps its piece as key, which is what the two bytes of U+00A1 read as.
TEST(VocabCompression, KeysOfBothKindsShareOneNumbering) {
  EXPECT_EQ(compressed({"\u00a1", "\u00c2\u00a1"}), (std::vector<std::int32_t>{0, 0}));
}

// Decoded, the piece of U+FFFD cannot be told from an error.
TEST(VocabCompression, TheReplacementCharacterItselfKeepsItsPiece) {
  auto key = vocabulary_key("\u00ef\u00bf\u00bd");
  ASSERT_TRUE(key.ok());
  EXPECT_EQ(key->rule, Rule::kPiece);
  EXPECT_EQ(key->text, "\u00ef\u00bf\u00bd");
}

TEST(VocabCompression, EncodedSurrogatesAreNoUtf8) {
  auto key = vocabulary_key("\u00ed\u0142\u0122");  // the bytes ED A0 80
  ASSERT_TRUE(key.ok());
  EXPECT_EQ(key->rule, Rule::kPiece);
}

TEST(VocabCompression, RefusesPiecesThatAreNoUtf8) {
  auto map = compress_vocabulary(std::vector<std::string>{"a", "\xff"});
  ASSERT_FALSE(map.ok());
  EXPECT_EQ(map.error().code, ErrorCode::kMalformed);
  EXPECT_FALSE(normalised_text("\xc3").ok());
}

TEST(VocabCompression, TextsGrowManyTimes) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += "\ufdfa";  // 18 characters each, once decomposed
  auto normalised = normalised_text(text);
  ASSERT_TRUE(normalised.ok());
  EXPECT_EQ(normalised->size(), 33'000U);
}

}  // namespace
}  // namespace rowtide
