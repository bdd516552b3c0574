// Damage of every kind, without a crash; bounds on what is read and on memory.
#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <random>

#include "checkpoint/sample.h"
#include "support/temp_dir.h"

namespace rowtide {
namespace {

using checkpoint::open_gguf;

GgufWriter small_gguf() {
  GgufWriter writer = sample_gguf();
  writer.erase("s.long_array");
  writer.erase("s.long_text");
  return writer;
}

TEST(GgufHostile, CutAtAnyByteIsRefused) {
  const std::string bytes = small_gguf().bytes();
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    auto gguf = open_bytes(bytes.substr(0, length));
    ASSERT_FALSE(gguf.ok()) << length;
    ASSERT_EQ(gguf.error().code, ErrorCode::kMalformed) << length << ": " << gguf.error().message;
    ASSERT_NE(gguf.error().message.find(kSamplePath), std::string::npos) << gguf.error().message;
    ASSERT_NE(gguf.error().message.find(std::to_string(length)), std::string::npos) << gguf.error().message;
  }
}

/// What a parser that accepted the bytes promises: tensors inside the file.
void expect_sound(const Result<checkpoint::Gguf>& gguf, std::uint64_t file_bytes) {
  if (!gguf) {
    EXPECT_NE(gguf.error().message.find(kSamplePath), std::string::npos) << gguf.error().message;
    return;
  }
  for (const checkpoint::Tensor& tensor : gguf->tensors) {
    ASSERT_GE(tensor.offset, gguf->files[0].header_bytes);
    ASSERT_LE(tensor.offset, file_bytes);
    ASSERT_LE(tensor.bytes, file_bytes - tensor.offset);
  }
}

TEST(GgufHostile, AnyFlippedBitIsSurvived) {
  const GgufWriter writer = small_gguf();
  const std::string header = writer.header();
  const std::string bytes = writer.bytes();
  for (std::size_t at = 0; at < header.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string flipped = bytes;
      flipped[at] = static_cast<char>(flipped[at] ^ (1 << bit));
      expect_sound(open_bytes(flipped), flipped.size());
    }
    for (const char value : {'\x00', '\x7f', '\xff'}) {
      std::string replaced = bytes;
      replaced[at] = value;
      expect_sound(open_bytes(replaced), replaced.size());
    }
  }
}

TEST(GgufHostile, RandomDamageIsSurvived) {
  const std::string bytes = small_gguf().bytes();
  const std::size_t header_bytes = small_gguf().header().size();
  std::mt19937_64 random(1);
  for (int round = 0; round < 2000; ++round) {
    std::string damaged = bytes;
    for (int i = 0; i < 1 + round % 16; ++i) damaged[random() % header_bytes] = static_cast<char>(random());
    expect_sound(open_bytes(damaged), damaged.size());
  }
}

// Reading stops exactly where the data section begins (padding is not read either), and in few reads.
TEST(GgufHostile, NoTensorDataIsTouched) {
  GgufWriter writer = sample_gguf();
  writer.set("tokenizer.ggml.merges", std::vector<std::string>(50000, "left right"));
  for (int i = 0; i < 2000; ++i) writer.add_tensor("blk." + std::to_string(i) + ".weight", 0, {8}, 32);
  MemoryDisk disk(kSamplePath, writer.bytes());
  auto gguf = open_gguf(kSamplePath, disk.opener());
  ASSERT_TRUE(gguf.ok()) << gguf.error().message;
  EXPECT_LE(disk.read_end(kSamplePath), gguf->files[0].header_bytes);
  EXPECT_GT(disk.read_end(kSamplePath), gguf->files[0].header_bytes - writer.alignment);
  EXPECT_LE(disk.bytes_read(), gguf->files[0].header_bytes);
  EXPECT_LE(disk.reads().size(), 60u);
}

TEST(GgufHostile, ArraysOfNumbersAreNotRead) {
  GgufWriter writer = sample_gguf();
  writer.set("s.long_array", std::vector<std::uint32_t>(1000000, 1));
  MemoryDisk disk(kSamplePath, writer.bytes());
  ASSERT_TRUE(open_gguf(kSamplePath, disk.opener()).ok());
  EXPECT_LT(disk.bytes_read(), 200000u);
}

std::uint64_t status_kib(const std::string& field) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(field + ":")) return std::stoull(line.substr(field.size() + 1));
  }
  return 0;
}

/// By how much opening `path` raises the peak memory of a process of its own, in KiB; nothing if it crashed.
std::optional<std::uint64_t> peak_growth_kib(const std::string& path, bool is_accepted) {
  int ends[2];
  if (::pipe(ends) != 0) return {};
  const pid_t child = ::fork();
  if (child == 0) {
    ::malloc_trim(0);  // memory that the test itself has freed must not hide what the parser takes
    std::ofstream("/proc/self/clear_refs") << 5;  // the peak starts anew
    const std::uint64_t before = status_kib("VmRSS");
    const bool as_expected = open_gguf(path, io::open_file).ok() == is_accepted;
    const std::uint64_t growth = as_expected ? status_kib("VmHWM") - before : ~0ull;
    const bool is_written = ::write(ends[1], &growth, sizeof(growth)) == sizeof(growth);
    ::_exit(is_written ? 0 : 1);
  }
  ::close(ends[1]);
  std::uint64_t growth = 0;
  const bool is_read = ::read(ends[0], &growth, sizeof(growth)) == sizeof(growth);
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  return is_read && status == 0 ? std::optional(growth) : std::nullopt;
}

#ifdef __SANITIZE_ADDRESS__
constexpr std::uint64_t kLimitKib = 4 * 16 * 1024;  // red zones, shadow, and freed memory that is held back
#else
constexpr std::uint64_t kLimitKib = 16 * 1024;
#endif

class GgufMemory : public testing::Test {
 protected:
  void write(const std::string& name, const std::string& bytes) {
    std::ofstream(dir_.file(name), std::ios::binary) << bytes;
  }

  void expect_small(const std::string& name, bool is_accepted) {
    const auto growth = peak_growth_kib(dir_.file(name), is_accepted);
    ASSERT_TRUE(growth.has_value());
    EXPECT_LT(*growth, kLimitKib);
    RecordProperty("peak_growth_kib", std::to_string(*growth));
  }

  TempDir dir_;
};

TEST_F(GgufMemory, TokenListOfFortyMebibytes) {
  GgufWriter writer = sample_gguf();
  constexpr std::uint64_t kTokens = 1 << 20;
  std::string tokens = little_endian(9u) + little_endian(8u) + little_endian(kTokens);
  for (std::uint64_t i = 0; i < kTokens; ++i) tokens += gguf_text(std::string(32, 't'));
  ASSERT_GT(tokens.size(), 39u << 20);
  writer.set_raw("tokenizer.ggml.tokens", std::move(tokens));
  write("model.gguf", writer.bytes());
  expect_small("model.gguf", true);
}

TEST_F(GgufMemory, HugeCountsInALargeFile) {
  GgufWriter writer = sample_gguf();
  writer.pair_count = checkpoint::kMaxPairs;
  writer.tensor_count = checkpoint::kMaxTensors;
  write("model.gguf", writer.bytes() + std::string(8 << 20, '\0'));
  expect_small("model.gguf", false);
  writer.set_raw("s.u64", gguf_array<std::string>({}, 1000000));  // all of them empty, then a key of no bytes
  write("model.gguf", writer.bytes() + std::string(16 << 20, '\0'));
  expect_small("model.gguf", false);
  writer.set_raw("s.u64", little_endian(8u) + little_endian<std::uint64_t>(15 << 20));  // one long text
  write("model.gguf", writer.bytes() + std::string(16 << 20, '\0'));
  expect_small("model.gguf", false);
}

// A file that costs its maker nothing (a hole) must not cost its reader seconds.
TEST_F(GgufMemory, HeaderLongerThanTheLimit) {
  GgufWriter writer = sample_gguf();
  constexpr std::uint64_t kFileBytes = std::uint64_t{8} << 30;
  writer.set_raw("zz", little_endian(9u) + little_endian(8u) + little_endian(kFileBytes / 8 - 100'000));
  write("model.gguf", writer.bytes());
  std::filesystem::resize_file(dir_.file("model.gguf"), kFileBytes);
  const auto gguf = open_gguf(dir_.file("model.gguf"), io::open_file);
  ASSERT_FALSE(gguf.ok());
  EXPECT_EQ(gguf.error().code, ErrorCode::kUnsupported);
  EXPECT_NE(gguf.error().message.find("'zz'"), std::string::npos) << gguf.error().message;
  EXPECT_NE(gguf.error().message.find("longer than the limit of 268435456 bytes"), std::string::npos);
}

GgufWriter gguf_at_its_limits() {
  GgufWriter writer;
  writer.pairs.reserve(checkpoint::kMaxPairs);
  const std::string value = gguf_value(std::string(190, 'v'));
  while (writer.pairs.size() < checkpoint::kMaxPairs) {
    writer.pairs.push_back({"a.key.with.some.length." + std::to_string(100000 + writer.pairs.size()), value});
  }
  while (writer.tensors.size() < checkpoint::kMaxTensors) {
    writer.add_tensor(std::string(58, 't') + std::to_string(100000 + writer.tensors.size()), 24, {1}, 1);
  }
  return writer;
}

TEST_F(GgufMemory, EveryLimitReached) {
  write("model.gguf", gguf_at_its_limits().bytes());
  expect_small("model.gguf", true);
}

TEST_F(GgufMemory, EveryLimitReachedByEachPartOfASet) {
  for (std::uint16_t number = 0; number < 2; ++number) {
    GgufWriter writer = gguf_at_its_limits();
    writer.pairs.resize(checkpoint::kMaxPairs - 3);
    writer.set("split.no", number);
    writer.set<std::uint16_t>("split.count", 2);
    writer.set<std::uint32_t>("split.tensors.count", checkpoint::kMaxTensors);
    write(fmt::format("model-{:05}-of-00002.gguf", number + 1), writer.bytes());
  }
  expect_small("model-00002-of-00002.gguf", false);
}

}  // namespace
}  // namespace rowtide
