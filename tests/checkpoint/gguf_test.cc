#include "checkpoint/gguf.h"

#include <gtest/gtest.h>

#include <functional>

#include "checkpoint/sample.h"

namespace rowtide {
namespace {

using checkpoint::Gguf;
using checkpoint::Tensor;

TEST(Gguf, ReadsVersionsTwoAndThree) {
  for (const std::uint32_t version : {2u, 3u}) {
    GgufWriter writer = sample_gguf();
    writer.version = version;
    const std::string header = writer.header();
    auto gguf = open_bytes(writer.bytes());
    ASSERT_TRUE(gguf.ok()) << gguf.error().message;
    ASSERT_EQ(gguf->files.size(), 1u);
    EXPECT_EQ(gguf->files[0].path, kSamplePath);
    EXPECT_EQ(gguf->files[0].bytes, writer.bytes().size());
    EXPECT_EQ(gguf->files[0].header_bytes, header.size());
    ASSERT_EQ(gguf->tensors.size(), 3u);
    const Tensor* second = gguf->find_tensor("second");
    ASSERT_NE(second, nullptr);
    EXPECT_EQ(second->type->name, "q8_0");
    EXPECT_EQ(second->shape, (std::array<std::uint64_t, 4>{64, 2, 1, 1}));
    EXPECT_EQ(second->offset, header.size() + 32);
    EXPECT_EQ(second->bytes, 136u);
    EXPECT_EQ(gguf->path_of(*second), kSamplePath);
    EXPECT_EQ(gguf->find_tensor("fourth"), nullptr);
  }
}

TEST(Gguf, LooksUpByType) {
  auto gguf = open_bytes(sample_gguf().bytes());
  ASSERT_TRUE(gguf.ok()) << gguf.error().message;
  const checkpoint::Metadata& metadata = gguf->metadata;
  EXPECT_EQ(*metadata.integer("s.u8"), 200u);
  EXPECT_EQ(*metadata.integer("s.u16"), 60000u);
  EXPECT_EQ(*metadata.integer("s.i16"), 30000u);
  EXPECT_EQ(*metadata.integer("s.u32"), 4000000000u);
  EXPECT_EQ(*metadata.integer("s.u64"), 0xfedcba9876543210u);
  EXPECT_EQ(*metadata.integer("s.i64"), 7u);
  EXPECT_EQ(*metadata.text("general.architecture"), "sample");
  EXPECT_EQ(*metadata.integers("s.array"), (std::vector<std::uint64_t>{1, 2, 3}));
  EXPECT_TRUE(metadata.integers("s.none")->empty());
  EXPECT_EQ(*metadata.array_size("tokenizer.ggml.tokens"), 3u);
  EXPECT_EQ(*metadata.array_size("s.long_array"), 5000u);
  EXPECT_TRUE(metadata.has("s.f64"));
  EXPECT_FALSE(metadata.has("s.f65"));
}

TEST(Gguf, SaysWhatAKeyIsInsteadOfWhatItShouldBe) {
  auto gguf = open_bytes(sample_gguf().bytes());
  ASSERT_TRUE(gguf.ok()) << gguf.error().message;
  const checkpoint::Metadata& metadata = gguf->metadata;
  const ErrorCode malformed = ErrorCode::kMalformed;
  expect_refused(metadata.integer("s.missing"), malformed, {kSamplePath, "'s.missing'", "is missing"});
  expect_refused(metadata.integer("s.f32"), malformed, {kSamplePath, "'s.f32'", "integer", "a f32"});
  expect_refused(metadata.integer("s.bool"), malformed, {"'s.bool'", "a bool"});
  expect_refused(metadata.integer("s.array"), malformed, {"'s.array'", "an array of 3 i32"});
  expect_refused(metadata.integer("s.i32"), malformed, {"'s.i32'", "non-negative", "-5"});
  expect_refused(metadata.integer("s.i8"), malformed, {"'s.i8'", "-100"});
  expect_refused(metadata.integers("s.u32"), malformed, {"'s.u32'", "array", "a u32"});
  expect_refused(metadata.integers("s.floats"), malformed, {"'s.floats'", "an array of 3 f32"});
  expect_refused(metadata.integers("s.long_array"), malformed, {"'s.long_array'", "short", "5000 u32"});
  expect_refused(metadata.text("s.long_text"), malformed, {"'s.long_text'", "short", "a long str"});
  expect_refused(metadata.text("s.u8"), malformed, {"'s.u8'", "text", "a u8"});
  expect_refused(metadata.array_size("s.u8"), malformed, {"'s.u8'", "array", "a u8"});
}

// Sizes as ggml's own block structures have them.
TEST(Gguf, KnowsTheTypesOfGgml) {
  struct Known {
    std::uint32_t number;
    const char* name;
    std::uint64_t values, bytes;
  };
  const Known known[] = {{0, "f32", 1, 4},       {8, "q8_0", 32, 34},   {10, "q2_K", 256, 84},  {14, "q6_K", 256, 210},
                         {20, "iq4_nl", 32, 18}, {30, "bf16", 1, 2},    {34, "tq1_0", 256, 54}, {39, "mxfp4", 32, 17},
                         {40, "nvfp4", 64, 36},  {41, "q1_0", 128, 18}, {42, "q2_0", 64, 18}};
  for (const Known& type : known) {
    const checkpoint::GgmlType* found = checkpoint::find_ggml_type(type.number);
    ASSERT_NE(found, nullptr) << type.name;
    EXPECT_EQ(found->name, type.name);
    EXPECT_EQ(found->block_values, type.values) << type.name;
    EXPECT_EQ(found->block_bytes, type.bytes) << type.name;
  }
  for (const std::uint32_t removed : {4u, 5u, 31u, 32u, 33u, 36u, 37u, 38u, 43u, 0xffffffffu}) {
    EXPECT_EQ(checkpoint::find_ggml_type(removed), nullptr) << removed;
  }
}

TEST(Gguf, AcceptsOddButRightFiles) {
  {
    SCOPED_TRACE("no tensors: no data section, no padding");
    GgufWriter writer = sample_gguf();
    writer.tensors.clear();
    auto gguf = open_bytes(writer.bytes());
    ASSERT_TRUE(gguf.ok()) << gguf.error().message;
    EXPECT_EQ(gguf->files[0].header_bytes, writer.bytes().size());
  }
  {
    SCOPED_TRACE("no pairs");
    GgufWriter writer = sample_gguf();
    writer.pairs.clear();
    EXPECT_TRUE(open_bytes(writer.bytes()).ok());
  }
  {
    SCOPED_TRACE("a tensor without elements takes no room");
    GgufWriter writer = sample_gguf();
    writer.add_tensor("empty", 0, {0, 3}, 0);
    writer.tensors.back().offset = 64;  // inside another tensor
    auto gguf = open_bytes(writer.bytes());
    ASSERT_TRUE(gguf.ok()) << gguf.error().message;
    EXPECT_EQ(gguf->find_tensor("empty")->bytes, 0u);
  }
  {
    SCOPED_TRACE("another alignment, gaps between tensors, bytes behind the last");
    GgufWriter writer = sample_gguf();
    writer.alignment = 256;
    writer.set<std::uint32_t>("general.alignment", 256);
    writer.tensor("third").offset = 4096;
    auto gguf = open_bytes(writer.bytes() + std::string(8192, 'z'));
    ASSERT_TRUE(gguf.ok()) << gguf.error().message;
    EXPECT_EQ(gguf->files[0].header_bytes % 256, 0u);
    EXPECT_EQ(gguf->find_tensor("third")->offset, gguf->files[0].header_bytes + 4096);
  }
}

struct Refusal {
  const char* what;
  std::function<void(GgufWriter&)> spoil;
  ErrorCode code;
  std::initializer_list<std::string_view> named;
};

void expect_refusals(const std::vector<Refusal>& refusals) {
  for (const Refusal& refusal : refusals) {
    SCOPED_TRACE(refusal.what);
    GgufWriter writer = sample_gguf();
    refusal.spoil(writer);
    auto gguf = open_bytes(writer.bytes());
    expect_refused(gguf, refusal.code, refusal.named);
    expect_refused(gguf, refusal.code, {kSamplePath});
  }
}

constexpr ErrorCode kMalformed = ErrorCode::kMalformed;
constexpr ErrorCode kUnsupported = ErrorCode::kUnsupported;
constexpr std::uint64_t kHuge = 0xffffffffffffffff;

TEST(Gguf, RefusesOtherFormatsAndVersions) {
  expect_refusals({
      {"magic", [](auto& w) { w.magic = "GGML"; }, kMalformed, {"not a GGUF file", "'GGML'"}},
      {"magic of control characters",
       [](auto& w) {
         w.magic =
             "\x7f"
             "ELF";
       },
       kMalformed,
       {"'\\x7fELF'"}},
      {"version 0", [](auto& w) { w.version = 0; }, kUnsupported, {"version 0"}},
      {"version 1", [](auto& w) { w.version = 1; }, kUnsupported, {"version 1 ", "2 and 3"}},
      {"version 4", [](auto& w) { w.version = 4; }, kUnsupported, {"version 4 ", "2 and 3"}},
      {"big-endian", [](auto& w) { w.version = 0x03000000; }, kUnsupported, {"0x03000000", "big-endian"}},
  });
}

TEST(Gguf, RefusesImpossibleCounts) {
  expect_refusals({
      {"pairs overflow", [](auto& w) { w.pair_count = kHuge; }, kMalformed, {"18446744073709551615 key-value pairs"}},
      {"tensors overflow", [](auto& w) { w.tensor_count = kHuge; }, kMalformed, {"18446744073709551615 tensors"}},
      {"pairs beyond the file",
       [](auto& w) { w.pair_count = 1000000; },
       kMalformed,
       {"1000000 key-value pairs", "beyond the file's"}},
      {"tensors beyond the file",
       [](auto& w) { w.tensor_count = 1000000; },
       kMalformed,
       {"1000000 tensors", "beyond the file's"}},
      {"more pairs than the limit",
       [](auto& w) {
         w.pair_count = 8193;
         w.set("pad", std::string(1000000, ' '));
       },
       kUnsupported,
       {"8193 key-value pairs", "8192"}},
      {"more tensors than the limit",
       [](auto& w) {
         w.tensor_count = 16385;
         w.set("pad", std::string(2000000, ' '));
       },
       kUnsupported,
       {"16385 tensors", "16384"}},
      {"more kept than the limit",
       [](auto& w) {
         for (int i = 0; i < 2100; ++i) w.set("k" + std::to_string(i), std::string(1020, 'v'));
       },
       kUnsupported,
       {"bytes of keys and short values", "2097152"}},
  });
}

TEST(Gguf, RefusesImpossiblePairs) {
  expect_refusals({
      {"empty key", [](auto& w) { w.pairs[3].key = ""; }, kMalformed, {"key 4 of 18", "a key of 0 bytes"}},
      {"long key", [](auto& w) { w.pairs[3].key = std::string(65536, 'k'); }, kMalformed, {"key 4 of 18", "65536"}},
      {"text longer than the file",
       [](auto& w) { w.set_raw("s.u8", little_endian(8u) + little_endian<std::uint64_t>(1 << 30)); },
       kMalformed,
       {"key 's.u8'", "1073741824 bytes of text"}},
      {"text length overflows",
       [](auto& w) { w.set_raw("s.u8", little_endian(8u) + little_endian(kHuge)); },
       kMalformed,
       {"key 's.u8'", "18446744073709551615"}},
      {"array longer than the file",
       [](auto& w) { w.set_raw("s.u8", gguf_array<std::uint64_t>({1}, 1 << 20)); },
       kMalformed,
       {"key 's.u8'", "1048576 array elements"}},
      {"array bytes overflow",
       [](auto& w) { w.set_raw("s.u8", gguf_array<std::uint64_t>({1}, (1ull << 61) + 1)); },
       kMalformed,
       {"key 's.u8'", "2305843009213693953 array elements"}},
      {"array of texts overflows",
       [](auto& w) { w.set_raw("s.u8", gguf_array<std::string>({"x"}, 1ull << 61)); },
       kMalformed,
       {"key 's.u8'", "2305843009213693952 array elements"}},
      {"text inside an array longer than the file",
       [](auto& w) { w.set_raw("s.u8", gguf_array<std::string>({}, 1) + little_endian<std::uint64_t>(99999999)); },
       kMalformed,
       {"key 's.u8'", "99999999 bytes of text"}},
      {"array of arrays",
       [](auto& w) { w.set_raw("s.u8", little_endian(9u) + little_endian(9u) + little_endian<std::uint64_t>(1)); },
       kUnsupported,
       {"key 's.u8'", "array of arrays"}},
      {"unknown type",
       [](auto& w) { w.set_raw("s.u8", little_endian(13u) + "x"); },
       kMalformed,
       {"key 's.u8'", "value type 13"}},
      {"unknown element type",
       [](auto& w) { w.set_raw("s.u8", little_endian(9u) + little_endian(77u) + little_endian<std::uint64_t>(1)); },
       kMalformed,
       {"key 's.u8'", "value type 77"}},
      {"duplicate key", [](auto& w) { w.pairs.push_back(w.pairs[5]); }, kMalformed, {"key 's.u32'", "occurs twice"}},
      {"a hostile key in a message",
       [](auto& w) { w.pairs.insert(w.pairs.end(), 2, {"a\n\x01", gguf_value(1u)}); },
       kMalformed,
       {"key 'a\\x0a\\x01'"}},
      {"alignment",
       [](auto& w) { w.template set<std::uint32_t>("general.alignment", 48); },
       kMalformed,
       {"key 'general.alignment'", "48 is not a power of two"}},
      {"alignment 0",
       [](auto& w) { w.template set<std::uint32_t>("general.alignment", 0); },
       kMalformed,
       {"key 'general.alignment'", "0 is not a power of two"}},
      {"alignment of 64 bits",
       [](auto& w) { w.template set<std::uint64_t>("general.alignment", 1ull << 32); },
       kMalformed,
       {"key 'general.alignment'", "4294967296 is not a power of two of at most 32 bits"}},
      {"alignment of another type",
       [](auto& w) { w.set("general.alignment", "32"); },
       kMalformed,
       {"key 'general.alignment'", "a str"}},
  });
}

TEST(Gguf, RefusesImpossibleTensors) {
  expect_refusals({
      {"long name", [](auto& w) { w.tensors[1].name = std::string(65, 'n'); }, kMalformed, {"tensor 2 of 3", "65"}},
      {"name longer than all", [](auto& w) { w.tensors[1].name = std::string(100000, 'n'); }, kMalformed, {"100000"}},
      {"no dimensions", [](auto& w) { w.tensors[1].shape = {}; }, kMalformed, {"tensor 'second'", "0 dimensions"}},
      {"five dimensions",
       [](auto& w) { w.tensors[1].shape = {32, 1, 1, 1, 1}; },
       kMalformed,
       {"'second'", "5 dimensions"}},
      {"product wraps to 0",
       [](auto& w) { w.tensors[1].shape = {1ull << 32, 1ull << 32}; },
       kMalformed,
       {"'second'", "[4294967296, 4294967296, 1, 1]", "overflows"}},
      {"product wraps to few",
       [](auto& w) { w.tensors[0].shape = {3, 0xaaaaaaaaaaaaaaab}; },
       kMalformed,
       {"'first'", "overflows"}},
      {"bytes wrap", [](auto& w) { w.tensors[0].shape = {1ull << 62}; }, kMalformed, {"'first'", "overflows"}},
      {"more elements than a signed number",
       [](auto& w) { w.tensors[1] = {"second", 24, {1ull << 63}, 8, {}}; },
       kMalformed,
       {"'second'", "overflows"}},
      {"row is no multiple of the block",
       [](auto& w) { w.tensors[1].shape = {48, 2}; },
       kMalformed,
       {"'second'", "48", "32", "q8_0"}},
      {"unknown type", [](auto& w) { w.tensors[1].type = 43; }, kUnsupported, {"'second'", "ggml type 43"}},
      {"removed type", [](auto& w) { w.tensors[1].type = 4; }, kUnsupported, {"'second'", "ggml type 4 "}},
      {"negative type", [](auto& w) { w.tensors[1].type = 0xffffffff; }, kUnsupported, {"'second'", "4294967295"}},
      {"misaligned", [](auto& w) { w.tensors[2].offset = 200; }, kMalformed, {"'third'", "offset 200", "alignment 32"}},
      {"outside the file",
       [](auto& w) { w.tensors[2].offset = 1 << 20; },
       kMalformed,
       {"'third'", "ends at byte", "but the file has"}},
      {"offset overflows", [](auto& w) { w.tensors[2].offset = kHuge - 31; }, kMalformed, {"'third'", "overflows"}},
      {"overlap", [](auto& w) { w.tensors[2].offset = 160; }, kMalformed, {"'third'", "inside tensor 'second'"}},
      {"same place", [](auto& w) { w.tensors[1].offset = 0; }, kMalformed, {"'first'", "'second'", "inside tensor"}},
      {"duplicate", [](auto& w) { w.tensors[2].name = "first"; }, kMalformed, {"tensor 'first'", "occurs twice"}},
  });
}

TEST(Gguf, NamesExpectedAndRealLengthOfAFileThatIsTooShort) {
  const std::string bytes = sample_gguf().bytes();
  const std::string needed = std::to_string(bytes.size());
  const std::string cut = std::to_string(bytes.size() - 1);
  expect_refused(open_bytes(bytes.substr(0, bytes.size() - 1)), kMalformed, {kSamplePath, "'third'", needed, cut});
}

}  // namespace
}  // namespace rowtide
