#include "table/qwen_gguf.h"

#include <gtest/gtest.h>

#include <functional>

#include "table/qwen_sample.h"

namespace rowtide {
namespace {

using Spoil = std::function<void(GgufWriter&)>;

Result<Checkpoint> open_spoiled(const Spoil& spoil) {
  GgufWriter writer = qwen_sample();
  spoil(writer);
  return open_checkpoint_bytes(writer.bytes());
}

TEST(QwenGguf, FindsTheTable) {
  const GgufWriter writer = qwen_sample();
  auto checkpoint = open_checkpoint_bytes(writer.bytes());
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.error().message;
  EXPECT_EQ(checkpoint->path(), kQwenPath);
  EXPECT_EQ(checkpoint->format(), "gguf");
  EXPECT_EQ(checkpoint->family(), "qwen_ple");
  EXPECT_EQ(checkpoint->model_type(), "qwen4exp");
  EXPECT_EQ(checkpoint->bytes_total(), writer.bytes().size());
  EXPECT_EQ(checkpoint->bytes_table(), 424u * 34);
  EXPECT_EQ(checkpoint->bytes_rest(), writer.bytes().size() - 424 * 34);
  ASSERT_EQ(checkpoint->tables().size(), 1u);
  const Table& table = checkpoint->tables()[0];
  EXPECT_EQ(table.name, kTableName);
  EXPECT_EQ(table.layer, 1u);
  EXPECT_EQ(table.rows, 424u);
  EXPECT_EQ(table.row_values, 32u);
  EXPECT_EQ(table.row_bytes, 34u);
  EXPECT_EQ(table.row_format, RowFormat::kQ8_0);
  ASSERT_EQ(table.components.size(), 1u);
  EXPECT_EQ(table.components[0].name, "values");
  EXPECT_EQ(table.components[0].row_bytes, 34u);
  ASSERT_EQ(table.components[0].extents.size(), 1u);
  EXPECT_EQ(table.components[0].extents[0].path, kQwenPath);
  EXPECT_EQ(table.components[0].extents[0].offset, writer.header().size() + 512);
  EXPECT_EQ(table.components[0].extents[0].first_row, 0u);
  EXPECT_EQ(table.components[0].extents[0].rows, 424u);
  EXPECT_EQ(table.components[0].extents[0].header_bytes, writer.header().size());
}

// The rows that the golden vectors give for this configuration.
TEST(QwenGguf, AddressesAsTheStoredConstantsSay) {
  auto checkpoint = open_checkpoint_bytes(qwen_sample().bytes());
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.error().message;
  const Addressing& addressing = *checkpoint->tables()[0].addressing;
  EXPECT_EQ(addressing.row_count(), 420u);
  EXPECT_FALSE(addressing.image_token_id().has_value());
  const std::vector<TokenId> tokens = {3, 4, 1, 6, 7};
  std::vector<RowId> ids(20);
  History history = addressing.start();
  addressing.rows(tokens, history, ids);
  EXPECT_EQ(ids, (std::vector<RowId>{98,  115, 261, 339, 35,  140, 297, 393, 98,  119,
                                     224, 401, 62,  137, 272, 389, 49,  131, 288, 358}));
}

TEST(QwenGguf, ServesSixRowFormats) {
  struct Format {
    RowFormat format;
    std::uint32_t type;
    std::uint64_t row_bytes;
  };
  for (const Format& format :
       {Format{RowFormat::kF32, 0, 128}, Format{RowFormat::kF16, 1, 64}, Format{RowFormat::kQ4_0, 2, 18},
        Format{RowFormat::kQ8_0, 8, 34}, Format{RowFormat::kIq4Nl, 20, 18}, Format{RowFormat::kBf16, 30, 64}}) {
    SCOPED_TRACE(row_format_name(format.format));
    auto checkpoint = open_spoiled([&](GgufWriter& w) {
      w.tensor(kTableName).type = format.type;
      w.tensor(kTableName).bytes = 424 * format.row_bytes;
    });
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.error().message;
    EXPECT_EQ(checkpoint->tables()[0].row_format, format.format);
    EXPECT_EQ(checkpoint->tables()[0].row_bytes, format.row_bytes);
  }
}

TEST(QwenGguf, TakesTheVocabularyWhereItIsTold) {
  const auto accepts = [](const Spoil& spoil) {
    auto checkpoint = open_spoiled(spoil);
    EXPECT_TRUE(checkpoint.ok()) << checkpoint.error().message;
  };
  const std::vector<std::string> tokens(32, "t");
  accepts([](GgufWriter& w) {  // the key wins over the tensor
    w.set<std::uint32_t>("qwen4exp.vocab_size", 32);
    w.tensor("token_embd.weight").shape = {8, 31};
  });
  accepts([&](GgufWriter& w) {  // the tensor over the tokenizer
    w.set("tokenizer.ggml.tokens", std::vector<std::string>(31, "t"));
  });
  accepts([&](GgufWriter& w) {
    w.erase_tensor("token_embd.weight");
    w.set("tokenizer.ggml.tokens", tokens);
  });
  expect_refused(open_spoiled([](GgufWriter& w) { w.erase_tensor("token_embd.weight"); }), ErrorCode::kMalformed,
                 {kQwenPath, "'tokenizer.ggml.tokens'", "is missing"});
  expect_refused(open_spoiled([](GgufWriter& w) { w.set<std::uint32_t>("qwen4exp.vocab_size", 33); }),
                 ErrorCode::kMismatch, {"'qwen4exp.ple.layer_multipliers'", "[0] is 256496738022509279"});
}

TEST(QwenGguf, OptionalKeys) {
  auto image = open_spoiled([](GgufWriter& w) { w.set<std::uint32_t>("qwen4exp.ple.image_token_id", 30); });
  ASSERT_TRUE(image.ok()) << image.error().message;
  EXPECT_EQ(image->tables()[0].addressing->image_token_id(), 30);
  // Signed and wider integers say the same.
  auto wide = open_spoiled([](GgufWriter& w) {
    w.set("qwen4exp.ple.layers", std::vector<std::uint64_t>{1});
    w.set<std::int64_t>("qwen4exp.ple.ngram_size", 3);
    w.set("qwen4exp.ple.head_offsets", std::vector<std::int64_t>{0, 101, 204, 311});
  });
  EXPECT_TRUE(wide.ok()) << wide.error().message;
}

TEST(QwenGguf, ModelsWithoutATableAreNoError) {
  const auto without = [](const Spoil& spoil, std::string_view model_type) {
    auto checkpoint = open_spoiled(spoil);
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.error().message;
    EXPECT_TRUE(checkpoint->tables().empty());
    EXPECT_EQ(checkpoint->family(), "");
    EXPECT_EQ(checkpoint->model_type(), model_type);
    EXPECT_EQ(checkpoint->bytes_table(), 0u);
    EXPECT_EQ(checkpoint->bytes_rest(), checkpoint->bytes_total());
  };
  const auto strip = [](GgufWriter& w) {
    w.erase_tensor(kTableName);
    std::erase_if(w.pairs, [](const GgufWriter::Pair& pair) { return pair.key.starts_with("qwen4exp.ple."); });
  };
  without(strip, "qwen4exp");
  without(
      [&](GgufWriter& w) {
        strip(w);
        w.set("qwen4exp.ple.layers", std::vector<std::uint32_t>{});
      },
      "qwen4exp");
  without([](GgufWriter& w) { w.set("general.architecture", "llama"); }, "llama");
  without([](GgufWriter& w) { w.erase("general.architecture"); }, "");
}

TEST(GemmaGguf, ARowForEachTokenId) {
  auto checkpoint = open_spoiled([](GgufWriter& w) { w.set("general.architecture", "gemma4"); });
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.error().message;
  ASSERT_EQ(checkpoint->tables().size(), 1u);
  const Table& table = checkpoint->tables()[0];
  EXPECT_EQ(checkpoint->family(), "unigram");
  EXPECT_EQ(table.rows, 424u);
  EXPECT_EQ(table.row_format, RowFormat::kQ8_0);
  EXPECT_EQ(table.bundle_rows, 1u);
  const std::vector<TokenId> tokens = {3, 423, 3};
  History history = table.addressing->start();
  std::vector<RowId> ids(3);
  table.addressing->rows(tokens, history, ids);
  EXPECT_EQ(ids, (std::vector<RowId>{3, 423, 3}));
}

struct Refusal {
  const char* what;
  Spoil spoil;
  ErrorCode code;
  std::initializer_list<std::string_view> named;
};

void expect_refusals(const std::vector<Refusal>& refusals) {
  for (const Refusal& refusal : refusals) {
    SCOPED_TRACE(refusal.what);
    auto checkpoint = open_spoiled(refusal.spoil);
    expect_refused(checkpoint, refusal.code, refusal.named);
    expect_refused(checkpoint, refusal.code, {kQwenPath});
  }
}

constexpr ErrorCode kMalformed = ErrorCode::kMalformed;
constexpr ErrorCode kMismatch = ErrorCode::kMismatch;
constexpr ErrorCode kUnsupported = ErrorCode::kUnsupported;

template <class T>
Spoil with(std::string_view key, T value) {
  return [=](GgufWriter& w) { w.set(key, value); };
}

Spoil without(std::string_view key) {
  return [=](GgufWriter& w) { w.erase(key); };
}

Spoil shaped(std::uint32_t type, std::vector<std::uint64_t> shape, std::uint64_t bytes) {
  return [=](GgufWriter& w) {
    WrittenTensor& table = w.tensor(kTableName);
    table.type = type;
    table.shape = shape;
    table.bytes = bytes;
  };
}

TEST(QwenGguf, RefusesHalfATable) {
  expect_refusals({
      {"keys without tensor",
       [](auto& w) { w.erase_tensor(kTableName); },
       kMalformed,
       {kTableName, "is missing", "'qwen4exp.ple.layers'"}},
      {"tensor without keys", without("qwen4exp.ple.layers"), kMalformed, {kTableName, "'qwen4exp.ple.layers'"}},
      {"tensor and no layer",
       with("qwen4exp.ple.layers", std::vector<std::uint32_t>{}),
       kMalformed,
       {kTableName, "'qwen4exp.ple.layers'"}},
  });
  for (const char* key :
       {"qwen4exp.block_count", "qwen4exp.ple.ngram_size", "qwen4exp.ple.heads_per_ngram", "qwen4exp.ple.eos_token_id",
        "qwen4exp.embedding_length_per_layer_input", "qwen4exp.ple.layer_multipliers", "qwen4exp.ple.head_vocab_sizes",
        "qwen4exp.ple.head_offsets"}) {
    expect_refused(open_spoiled(without(key)), kMalformed, {kQwenPath, key, "is missing"});
  }
}

TEST(QwenGguf, RefusesATensorThatIsNoServedTable) {
  expect_refusals({
      {"q4_K", shaped(12, {256, 424}, 424 * 144), kUnsupported, {kTableName, "q4_K", "iq4_nl"}},
      {"q4_1", shaped(3, {32, 424}, 424 * 20), kUnsupported, {kTableName, "q4_1"}},
      {"f64", shaped(28, {32, 424}, 424 * 256), kUnsupported, {kTableName, "f64"}},
      {"one dimension", shaped(8, {32}, 34), kMalformed, {"'qwen4exp.ple.head_offsets'", "1 rows"}},
      {"three dimensions", shaped(8, {32, 212, 2}, 424 * 34), kMalformed, {kTableName, "[32, 212, 2, 1]"}},
      {"no rows", shaped(8, {32, 0}, 0), kMalformed, {kTableName, "[32, 0, 1, 1]"}},
      {"no width", shaped(8, {0, 424}, 0), kMalformed, {kTableName, "[0, 424, 1, 1]"}},
      {"another width", shaped(8, {64, 424}, 424 * 68), kMismatch, {"embedding_length_per_layer_input", "32", "64"}},
      {"too few rows",
       shaped(8, {32, 419}, 419 * 34),
       kMalformed,
       {"'qwen4exp.ple.head_offsets'", "[3] is 311", "419"}},
  });
}

TEST(QwenGguf, RefusesConfigurationsOutOfBounds) {
  const std::string ple = "qwen4exp.ple.";
  expect_refusals({
      {"two layers",
       with(ple + "layers", std::vector<std::uint32_t>{1, 2}),
       kUnsupported,
       {"layers'", "lists 2 layers"}},
      {"layer beyond the model",
       with(ple + "layers", std::vector<std::uint32_t>{4}),
       kMalformed,
       {"[0] is 4", "4 layers"}},
      {"negative layer", with(ple + "layers", std::vector<std::int32_t>{-1}), kMalformed, {"layers'", "-1"}},
      {"layers as a number", with(ple + "layers", std::uint32_t{1}), kMalformed, {"layers'", "array", "a u32"}},
      {"order 1", with(ple + "ngram_size", std::uint32_t{1}), kMalformed, {"ngram_size'", "1 is not 2 to 8"}},
      {"order 9", with(ple + "ngram_size", std::uint32_t{9}), kMalformed, {"ngram_size'", "9 is not 2 to 8"}},
      {"no heads",
       with(ple + "heads_per_ngram", std::uint32_t{0}),
       kMalformed,
       {"heads_per_ngram'", "0 is not 1 to 32"}},
      {"many heads", with(ple + "heads_per_ngram", std::uint32_t{33}), kMalformed, {"heads_per_ngram'", "33"}},
      {"eos beyond the vocabulary", with(ple + "eos_token_id", std::uint32_t{32}), kMalformed, {"eos_token_id'", "32"}},
      {"negative eos", with(ple + "eos_token_id", std::int32_t{-1}), kMalformed, {"eos_token_id'", "-1"}},
      {"eos as text", with(ple + "eos_token_id", std::string("</s>")), kMalformed, {"eos_token_id'", "a str"}},
      {"image of 64 bits",
       with(ple + "image_token_id", ~std::uint64_t{0}),
       kMalformed,
       {"image_token_id'", "18446744073709551615"}},
      {"no vocabulary",
       with("qwen4exp.vocab_size", std::uint32_t{0}),
       kMalformed,
       {"'qwen4exp.vocab_size'", "0 is not 1"}},
      {"an empty token embedding",
       [](auto& w) { w.tensors[0] = {"token_embd.weight", 1, {8, 0}, 0, {}}; },
       kMalformed,
       {"'token_embd.weight'", "0 rows"}},
      {"architecture of control characters",
       [](auto& w) { w.set("general.architecture", std::string("qwen4exp\0", 9)); },
       kMalformed,
       {"'general.architecture'", "qwen4exp\\x00"}},
  });
}

TEST(QwenGguf, RefusesConstantsThatDoNotFollow) {
  using Numbers = std::vector<std::uint64_t>;
  const std::string multipliers = "qwen4exp.ple.layer_multipliers";
  const std::string sizes = "qwen4exp.ple.head_vocab_sizes";
  const std::string offsets = "qwen4exp.ple.head_offsets";
  expect_refusals({
      {"multiplier",
       with(multipliers, Numbers{256496738022509279, 251627398771002345, 55314113489879221}),
       kMismatch,
       {"layer_multipliers'", "[1] is 251627398771002345", "251627398771002343 follows"}},
      {"multipliers rounded to double",
       with(multipliers, Numbers{256496738022509280, 251627398771002343, 55314113489879221}),
       kMismatch,
       {"layer_multipliers'", "[0] is 256496738022509280", "256496738022509279 follows"}},
      {"too few multipliers",
       with(multipliers, Numbers{256496738022509279, 251627398771002343}),
       kMismatch,
       {"layer_multipliers'", "2 entries", "3"}},
      {"size", with(sizes, Numbers{101, 103, 107, 108}), kMismatch, {"head_vocab_sizes'", "[3] is 108", "109 follows"}},
      {"base no prime",
       with(sizes, Numbers{100, 103, 107, 109}),
       kMismatch,
       {"head_vocab_sizes'", "[0] is 100", "prime"}},
      {"another base",
       with(sizes, Numbers{97, 103, 107, 109}),
       kMismatch,
       {"head_vocab_sizes'", "[1] is 103", "101 follows"}},
      {"size 0", with(sizes, Numbers{0, 103, 107, 109}), kMismatch, {"head_vocab_sizes'", "[0] is 0"}},
      {"many sizes", with(sizes, Numbers{101, 103, 107, 109, 113}), kMismatch, {"head_vocab_sizes'", "5 entries", "4"}},
      {"size overflows",
       with(sizes, Numbers{101, 103, 107, ~0ull}),
       kMalformed,
       {"[3] is 311", "18446744073709551615"}},
      {"offset", with(offsets, Numbers{0, 101, 205, 311}), kMismatch, {"head_offsets'", "[2] is 205", "204 follows"}},
      {"offset outside",
       with(offsets, Numbers{0, 101, 204, 316}),
       kMalformed,
       {"head_offsets'", "[3] is 316", "424 rows"}},
      {"offset overflows", with(offsets, Numbers{0, ~0ull, 204, 311}), kMalformed, {"[1] is 18446744073709551615"}},
      {"no offsets", with(offsets, Numbers{}), kMismatch, {"head_offsets'", "0 entries", "4"}},
      {"offsets as floats",
       with(offsets, std::vector<float>{0, 101, 204, 311}),
       kMalformed,
       {"head_offsets'", "4 f32"}},
      {"long array of sizes", with(sizes, Numbers(2000, 101)), kMalformed, {"head_vocab_sizes'", "2000 u64"}},
  });
}

}  // namespace
}  // namespace rowtide
