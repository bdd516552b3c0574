#include "table/identity.h"

#include <gtest/gtest.h>
#include <xxhash.h>

#include <bit>
#include <set>

#include "table/qwen_sample.h"

namespace rowtide {
namespace {

struct Opened {
  explicit Opened(std::string bytes) : disk(kQwenPath, std::move(bytes)) {
    auto checkpoint = CheckpointOpener(disk.disk()).open(kQwenPath);
    if (!checkpoint) throw std::runtime_error(checkpoint.error().message);
    table = checkpoint->tables()[0];
  }
  std::string identity() {
    auto identity = table_identity(table, disk.opener());
    return identity ? *identity : identity.error().message;
  }
  MemoryDisk disk;
  Table table;
};

std::string number(std::uint64_t value) { return little_endian(value); }

/// The samples of one component, all of its rows given.
std::string sampled(const std::string& rows) {
  std::string out;
  const std::uint64_t blocks = (rows.size() + 4095) / 4096;
  const std::uint64_t taken = std::min<std::uint64_t>(blocks, 64);
  for (std::uint64_t i = 0; i < taken; ++i) {
    const std::uint64_t index = taken == 1 ? 0 : i * (blocks - 1) / (taken - 1);
    out += number(index) + rows.substr(index * 4096, 4096);
  }
  return out;
}

/// The bytes that identity.h describes, spelt out once more for a table of one extent that is given whole.
std::string described(const Table& table, const std::string& file) {
  std::string out = gguf_text("rowtide table identity 2");
  out += number(table.rows) + number(table.row_values) + number(table.row_bytes);
  out += gguf_text(row_format_name(table.row_format)) + number(std::bit_cast<std::uint32_t>(table.scale));
  if (table.addressing) {
    const Addressing& addressing = *table.addressing;
    out += gguf_text("qwen_ple") + number(2) + number(2) + number(2) + number(3) + number(420) + number(2);
    out += number(2) + number(1) + number(1) + number(~0ull);
    std::vector<RowId> ids(4);
    History history = addressing.start();
    for (TokenId token = 0; token < 64; ++token) {
      addressing.rows(std::vector<TokenId>{token}, history, ids);
      for (const RowId id : ids) out += number(id);
    }
  } else {
    out += gguf_text("none");
  }
  const Extent& extent = table.components[0].extents[0];
  out += number(1) + gguf_text("values") + number(table.row_bytes) + number(1) + number(extent.rows) + number(0);
  out += number(1) + number(extent.header_bytes) + file.substr(0, extent.header_bytes);
  return out + sampled(file.substr(extent.offset, table.bytes()));
}

std::string digest(const std::string& bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

TEST(Identity, IsTheDigestOfWhatIsDescribed) {
  const std::string bytes = qwen_sample().bytes();
  Opened opened(bytes);
  EXPECT_EQ(opened.identity(), digest(described(opened.table, bytes)));
  opened.table.addressing = nullptr;
  EXPECT_EQ(opened.identity(), digest(described(opened.table, bytes)));
  opened.table.components[0].extents[0].header_bytes = 0;
  EXPECT_EQ(opened.identity(), digest(described(opened.table, bytes)));
}

TEST(Identity, SamplesSixtyFourBlocksOfALargeTable) {
  GgufWriter writer = qwen_sample();
  writer.tensor(kTableName).shape = {32, 50000};
  writer.tensor(kTableName).bytes = 50000 * 34;
  const std::string bytes = writer.bytes();
  Opened opened(bytes);
  const std::size_t before = opened.disk.reads().size();
  EXPECT_EQ(opened.identity(), digest(described(opened.table, bytes)));
  std::set<std::uint64_t> blocks;
  const Extent& extent = opened.table.components[0].extents[0];
  for (std::size_t i = before; i < opened.disk.reads().size(); ++i) {
    const MemoryDisk::Read& read = opened.disk.reads()[i];
    if (read.offset < extent.header_bytes) continue;
    EXPECT_LE(read.bytes, 4096u);
    blocks.insert((read.offset - extent.offset) / 4096);
  }
  EXPECT_EQ(blocks.size(), 64u);
  EXPECT_EQ(*blocks.begin(), 0u);
  EXPECT_EQ(*blocks.rbegin(), 50000u * 34 / 4096);
}

TEST(Identity, StaysWhenTheFileIsRenamed) {
  Opened opened(qwen_sample().bytes());
  const std::string before = opened.identity();
  opened.disk.add("elsewhere", opened.disk.content(kQwenPath));
  opened.table.components[0].extents[0].path = "elsewhere";
  opened.table.name = "renamed";
  EXPECT_EQ(opened.identity(), before);
}

TEST(Identity, TellsTablesOfTheSameShapeApart) {
  const std::string bytes = qwen_sample().bytes();
  std::set<std::string> seen = {Opened(bytes).identity()};
  const auto expect_new = [&](std::string changed) {
    EXPECT_TRUE(seen.insert(Opened(std::move(changed)).identity()).second);
  };
  const std::uint64_t offset = Opened(bytes).table.components[0].extents[0].offset;
  for (const std::uint64_t at : {std::uint64_t{0}, std::uint64_t{5000}, std::uint64_t{424 * 34 - 1}}) {
    std::string changed = bytes;
    changed[offset + at] = static_cast<char>(changed[offset + at] ^ 1);
    expect_new(changed);
  }
  GgufWriter writer = qwen_sample();
  writer.set<std::uint32_t>("qwen4exp.ple.eos_token_id", 2);
  expect_new(writer.bytes());
  writer.set("general.name", "another");
  expect_new(writer.bytes());
}

// Where nothing is known of the header, other constants still make another table.
TEST(Identity, CoversTheAddressing) {
  std::set<std::string> seen;
  const auto expect_new = [&](const GgufWriter& writer) {
    Opened opened(writer.bytes());
    opened.table.components[0].extents[0].header_bytes = 0;
    EXPECT_TRUE(seen.insert(opened.identity()).second);
  };
  GgufWriter writer = qwen_sample();
  for (const std::uint32_t eos : {1u, 2u, 31u}) {
    writer.set("qwen4exp.ple.eos_token_id", eos);
    expect_new(writer);
  }
  for (const std::uint32_t image : {0u, 30u}) {
    writer.set("qwen4exp.ple.image_token_id", image);
    expect_new(writer);
  }
}

TEST(Identity, ReadsRowsAcrossExtents) {
  const std::string bytes = qwen_sample().bytes();
  Opened opened(bytes);
  Table& table = opened.table;
  table.components[0].extents[0].header_bytes = 0;
  const std::string rows = bytes.substr(table.components[0].extents[0].offset, table.bytes());
  // 100 rows, 300 rows, 24 rows: no cut falls on a block.
  table.components[0].extents.clear();
  std::uint64_t first = 0;
  std::string expected = gguf_text("rowtide table identity 2") + number(424) + number(32) + number(34) +
                         gguf_text("q8_0") + number(0x3f800000) + gguf_text("none") + number(1) + gguf_text("values") +
                         number(34) + number(3);
  std::string headers = number(3);
  table.addressing = nullptr;
  for (const std::uint64_t count : {100u, 300u, 24u}) {
    const std::string path = "part" + std::to_string(first);
    opened.disk.add(path, std::string(7, 'h') + rows.substr(first * 34, count * 34));
    expected += number(count) + number(table.components[0].extents.size());
    headers += number(7) + std::string(7, 'h');
    table.components[0].extents.push_back({path, 7, first, count, 7});
    first += count;
  }
  EXPECT_EQ(opened.identity(), digest(expected + headers + sampled(rows)));
}

/// 40,000 rows of 8 + 2 bytes. The scales come first in the first file and have the second one to themselves; the
/// values follow in the first and third.
struct TwoComponents {
  static constexpr std::uint64_t kRows = 40'000, kCutOfScales = 10'001, kCutOfValues = 33'333;

  TwoComponents() {
    table.rows = kRows;
    table.row_values = 8;
    table.row_bytes = 10;
    table.scale = 0.25F;
    for (std::uint64_t i = 0; i < 8 * kRows; ++i) values += static_cast<char>(i * 2654435761u >> 9);
    for (std::uint64_t i = 0; i < 2 * kRows; ++i) scales += static_cast<char>(i * 40503u >> 5);
    const std::string first = "head a" + scales.substr(0, 2 * kCutOfScales) + values.substr(0, 8 * kCutOfValues);
    disk.add("a", first);
    disk.add("b", "header b" + scales.substr(2 * kCutOfScales));
    disk.add("c", "no header" + values.substr(8 * kCutOfValues));
    table.components = {
        {"values",
         8,
         {{"a", 6 + 2 * kCutOfScales, 0, kCutOfValues, 6}, {"c", 9, kCutOfValues, kRows - kCutOfValues, 0}}},
        {"scales", 2, {{"a", 6, 0, kCutOfScales, 6}, {"b", 8, kCutOfScales, kRows - kCutOfScales, 8}}}};
  }
  std::string identity() {
    auto identity = table_identity(table, disk.opener());
    return identity ? *identity : identity.error().message;
  }

  MemoryDisk disk;
  Table table;
  std::string values, scales;
};

TEST(Identity, CoversEachComponentAndEachHeaderOnce) {
  TwoComponents two;
  const std::uint64_t rest_of_values = TwoComponents::kRows - TwoComponents::kCutOfValues;
  const std::uint64_t rest_of_scales = TwoComponents::kRows - TwoComponents::kCutOfScales;
  std::string expected = gguf_text("rowtide table identity 2") + number(40'000) + number(8) + number(10) +
                         gguf_text("f32") + number(0x3e800000) + gguf_text("none") + number(2);
  expected += gguf_text("values") + number(8) + number(2) + number(TwoComponents::kCutOfValues) + number(0) +
              number(rest_of_values) + number(1);
  expected += gguf_text("scales") + number(2) + number(2) + number(TwoComponents::kCutOfScales) + number(0) +
              number(rest_of_scales) + number(2);
  expected += number(3) + number(6) + "head a" + number(0) + number(8) + "header b";
  EXPECT_EQ(two.identity(), digest(expected + sampled(two.values) + sampled(two.scales)));
}

TEST(Identity, TellsScalesApart) {
  std::set<std::string> seen = {TwoComponents().identity()};
  TwoComponents other_scale;
  other_scale.table.scale = 0.5F;
  EXPECT_TRUE(seen.insert(other_scale.identity()).second);
  TwoComponents other_scales;
  std::string content = other_scales.disk.content("b");
  content.back() = static_cast<char>(content.back() ^ 1);
  other_scales.disk.add("b", content);
  EXPECT_TRUE(seen.insert(other_scales.identity()).second);
}

TEST(Identity, NamesAFileThatIsGoneOrShorter) {
  Opened opened(qwen_sample().bytes());
  opened.disk.add(kQwenPath, opened.disk.content(kQwenPath).substr(0, 5000));
  expect_refused(table_identity(opened.table, opened.disk.opener()), ErrorCode::kMalformed, {kQwenPath});
  opened.disk.remove(kQwenPath);
  expect_refused(table_identity(opened.table, opened.disk.opener()), ErrorCode::kNotFound, {kQwenPath});
}

}  // namespace
}  // namespace rowtide
