// tokenizer.json: DeepSeek-V3's, whose compression is golden/vocab_compression.json, and what is refused.
#include "checkpoint/tokenizer_json.h"

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "address/vocab_compression.h"
#include "base/sha256.h"
#include "support/golden.h"
#include "support/memory_disk.h"

namespace rowtide::checkpoint {
namespace {

using nlohmann::json;
using Pieces = std::vector<std::string>;

Result<Pieces> pieces_of(const std::string& content) {
  MemoryDisk disk("tokenizer.json", content);
  auto file = disk.opener()("tokenizer.json");
  return read_tokenizer_pieces(**file);
}

/// The tokenizer that `make test` fetches: 128,815 entries.
const Pieces& fetched_pieces() {
  static const Pieces pieces = [] {
    auto file = io::open_file(ROWTIDE_TOKENIZER);
    EXPECT_TRUE(file.ok()) << "run `scripts/setup.sh test`: " << file.error().message;
    auto read = file ? read_tokenizer_pieces(**file) : Result<Pieces>(file.error());
    EXPECT_TRUE(read.ok()) << read.error().message;
    return read ? *read : Pieces{};
  }();
  return pieces;
}

TokenMap map_of(const Pieces& pieces) {
  auto map = compress_vocabulary(pieces);
  EXPECT_TRUE(map.ok()) << map.error().message;
  return *map;
}

std::int64_t compressed_ids(std::span<const std::int32_t> map) {
  return std::set<std::int32_t>(map.begin(), map.end()).size();
}

std::string digest_of_int32(std::span<const std::int32_t> map) { return sha256_hex(std::as_bytes(map)); }

std::string digest_of_int64(std::span<const std::int32_t> map) {
  const std::vector<std::int64_t> wide(map.begin(), map.end());
  return sha256_hex(std::as_bytes(std::span(wide)));
}

TEST(TokenizerJson, TheFileIsTheOneOfTheGoldenResults) {
  std::ifstream file(ROWTIDE_TOKENIZER, std::ios::binary);
  std::ostringstream content;
  content << file.rdbuf();
  const std::string bytes = content.str();
  const json tokenizer = test::golden("vocab_compression.json")["tokenizer"];
  EXPECT_EQ(sha256_hex(std::as_bytes(std::span(bytes))), tokenizer["file_sha256"].get<std::string>());
  EXPECT_EQ(fetched_pieces().size(), tokenizer["entries"].get<std::size_t>());
}

TEST(TokenizerJson, CompressesToTheGoldenMap) {
  const json expected = test::golden("vocab_compression.json")["result"];
  const TokenMap map = map_of(fetched_pieces());
  EXPECT_EQ(compressed_ids(*map), expected["compressed_count"].get<std::int64_t>());
  EXPECT_EQ(digest_of_int64(*map), expected["map_sha256_int64_le"].get<std::string>());
  EXPECT_EQ(digest_of_int32(*map), expected["map_sha256_int32_le"].get<std::string>());
  const auto base = std::span(*map).first(expected["base_part_entries"].get<std::size_t>());
  EXPECT_EQ(compressed_ids(base), expected["base_part_compressed_count"].get<std::int64_t>());
  EXPECT_EQ(digest_of_int64(base), expected["base_part_map_sha256_int64_le"].get<std::string>());
  EXPECT_TRUE(check_token_map(map, 98'627).ok());
  expect_refused(check_token_map(map, 99'092), ErrorCode::kMismatch, {"98627", "99092"});
}

TEST(TokenizerJson, EntriesFallUnderTheGoldenRules) {
  using Rule = VocabularyKey::Rule;
  std::map<Rule, std::size_t> counts;
  std::map<std::string, std::set<bool>> kinds;  // by key: whether it came from a piece
  std::map<std::string, std::size_t> members;
  for (const std::string& piece : fetched_pieces()) {
    auto key = vocabulary_key(piece);
    ASSERT_TRUE(key.ok());
    ++counts[key->rule];
    kinds[key->text].insert(key->rule == Rule::kPiece);
    ++members[key->text];
  }
  const json expected = test::golden("vocab_compression.json")["result"];
  EXPECT_EQ(counts[Rule::kPiece], expected["rule_counts"]["raw_piece"].get<std::size_t>());
  EXPECT_EQ(counts[Rule::kText], expected["rule_counts"]["text_because_normalised_is_empty"].get<std::size_t>());
  EXPECT_EQ(counts[Rule::kNormalised], expected["rule_counts"]["normalised"].get<std::size_t>());
  EXPECT_EQ(std::ranges::count_if(kinds, [](const auto& kind) { return kind.second.size() == 2; }),
            expected["keys_shared_by_raw_and_normalised"].get<std::ptrdiff_t>());
  const auto largest = std::ranges::max_element(members, {}, &decltype(members)::value_type::second);
  EXPECT_EQ(largest->first, expected["largest_class"]["key"].get<std::string>());
  EXPECT_EQ(largest->second, expected["largest_class"]["members"].get<std::size_t>());
}

TEST(TokenizerJson, ExamplesHaveTheirPiecesAndCompressedIds) {
  const TokenMap map = map_of(fetched_pieces());
  const json examples = test::golden("vocab_compression.json")["examples"];
  for (const json& example : examples) {
    const auto id = example["id"].get<std::size_t>();
    SCOPED_TRACE(id);
    EXPECT_EQ(fetched_pieces().at(id), example["piece"].get<std::string>());
    EXPECT_EQ(map->at(id), example["compressed"].get<std::int32_t>());
    EXPECT_EQ(map->at(id), map->at(example["first_id_with_key"].get<std::size_t>()));
  }
}

// DeepSeek-V4.1 has 465 more added tokens, each with a key of its own.
TEST(TokenizerJson, FurtherAddedTokensGiveTheMapOfDeepseekV41) {
  Pieces pieces = fetched_pieces();
  for (int i = 0; i < 465; ++i) pieces.push_back("<\uff5cv4.1\u2581" + std::to_string(i) + "\uff5c>");
  const TokenMap map = map_of(pieces);
  const json expected = test::golden("vocab_compression.json")["deepseek_v41"];
  EXPECT_EQ(map->size(), expected["entries"].get<std::size_t>());
  EXPECT_EQ(compressed_ids(*map), expected["compressed_count"].get<std::int64_t>());
  EXPECT_EQ(digest_of_int64(*map), expected["map_sha256_int64_le"].get<std::string>());
  EXPECT_EQ(digest_of_int32(*map), expected["map_sha256_int32_le"].get<std::string>());

  std::ifstream file(ROWTIDE_SOURCE_DIR "/tests/golden/deepseek_v41_token_map.i32le", std::ios::binary);
  std::vector<std::int32_t> listed(map->size());
  file.read(reinterpret_cast<char*>(listed.data()), static_cast<std::streamsize>(listed.size() * 4));
  EXPECT_EQ(*map, listed);
  EXPECT_TRUE(check_token_map(map, 99'092).ok());
}

json small() {
  return {{"version", "1.0"},
          {"model", {{"type", "BPE"}, {"byte_fallback", false}, {"vocab", {{"b", 1}, {"a", 0}}}, {"merges", {"a b"}}}},
          {"decoder", {{"type", "ByteLevel"}, {"trim_offsets", true}}},
          {"added_tokens", {{{"id", 2}, {"content", "<s>"}, {"special", true}}, {{"id", 1}, {"content", "b"}}}}};
}

TEST(TokenizerJson, PiecesLieByTheirIds) {
  auto pieces = pieces_of(small().dump());
  ASSERT_TRUE(pieces.ok()) << pieces.error().message;
  EXPECT_EQ(*pieces, (Pieces{"a", "b", "<s>"}));
  json without = small();
  without.erase("added_tokens");
  EXPECT_EQ(*pieces_of(without.dump()), (Pieces{"a", "b"}));
  without["model"]["byte_fallback"] = nullptr;
  EXPECT_TRUE(pieces_of(without.dump()).ok());
}

void refuse(const std::string& pointer, const json& value, ErrorCode code,
            std::initializer_list<std::string_view> named) {
  json spoilt = small();
  spoilt[json::json_pointer(pointer)] = value;
  SCOPED_TRACE(spoilt.dump());
  expect_refused(pieces_of(spoilt.dump()), code, named);
}

TEST(TokenizerJson, RefusesIdsThatAreNone) {
  const auto malformed = ErrorCode::kMalformed, unsupported = ErrorCode::kUnsupported;
  refuse("/model/vocab/a", "0", malformed, {"tokenizer.json", "model.vocab.a", "'0' is no token id"});
  refuse("/model/vocab/a", -1, malformed, {"model.vocab.a", "-1 is no token id"});
  refuse("/model/vocab/a", 0.5, malformed, {"0.5 is no token id"});
  refuse("/model/vocab/a", nullptr, malformed, {"null is no token id"});
  refuse("/model/vocab/a", 1 << 20, unsupported, {"1048576", "limit of 1048575"});
  refuse("/added_tokens/0/id", UINT64_MAX, unsupported, {"added_tokens[0]", "18446744073709551615"});
  refuse("/added_tokens/0/id", "2", malformed, {"'2' is no token id"});
}

TEST(TokenizerJson, RefusesHolesAndSharedIds) {
  const auto malformed = ErrorCode::kMalformed;
  refuse("/added_tokens/0/id", 3, malformed, {"tokenizer.json", "no piece has id 2", "up to 3"});
  refuse("/model/vocab/a", 7, malformed, {"no piece has id 0"});
  refuse("/model/vocab/a", 1, malformed, {"model.vocab.a", "id 1 belongs to 'b' and to 'a'"});
  refuse("/added_tokens/1/content", "B", malformed, {"model.vocab.b", "id 1 belongs to 'B' and to 'b'"});
  expect_refused(pieces_of(R"({"model": {"type": "BPE", "vocab": {"a": 0, "a": 1}}})"), malformed,
                 {"model.vocab", "a"});
}

TEST(TokenizerJson, RefusesWhatHasAnotherForm) {
  const auto malformed = ErrorCode::kMalformed, unsupported = ErrorCode::kUnsupported;
  refuse("/model/type", 7, malformed, {"model.type", "7"});
  refuse("/model/type", {{"a", 1}}, malformed, {"model.type"});
  refuse("/model/vocab", json::parse(R"([["a", -1.5]])"), unsupported, {"model.vocab", "unigram"});
  refuse("/model/vocab", "a", malformed, {"model.vocab"});
  refuse("/model/vocab/a", json::array({1}), malformed, {"model.vocab.a"});
  refuse("/model", nullptr, malformed, {"model"});
  refuse("/added_tokens", {{"id", 1}}, malformed, {"added_tokens"});
  refuse("/added_tokens", 5, malformed, {"added_tokens"});
  refuse("/added_tokens/0", "x", malformed, {"added_tokens[0]"});
  refuse("/added_tokens/0", json::object(), malformed, {"added_tokens[0]", "id and content"});
  refuse("/added_tokens/0/content", 8, malformed, {"added_tokens[0].content", "8 is no text"});
  refuse("/decoder", json::array({1}), malformed, {"decoder"});
  for (const char* content : {"", "{", "[]", "17", "{}", R"({"model": {"type": "BPE"}})"}) {
    SCOPED_TRACE(content);
    expect_refused(pieces_of(content), malformed, {"tokenizer.json"});
  }
}

TEST(TokenizerJson, RefusesOtherKindsOfTokenizer) {
  const auto unsupported = ErrorCode::kUnsupported;
  refuse("/model/type", "WordPiece", unsupported, {"tokenizer.json", "'WordPiece'", "byte-level"});
  refuse("/model/byte_fallback", true, unsupported, {"byte_fallback"});
  refuse("/decoder/type", "Metaspace", unsupported, {"'Metaspace'"});
  refuse("/decoder", nullptr, unsupported, {"decoder.type ''"});
}

}  // namespace
}  // namespace rowtide::checkpoint
