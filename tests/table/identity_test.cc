#include "table/identity.h"

#include <gtest/gtest.h>
#include <xxhash.h>

#include <set>

#include "table/qwen_sample.h"

namespace rowtide {
namespace {

struct Opened {
  explicit Opened(std::string bytes) : disk(kQwenPath, std::move(bytes)) {
    auto checkpoint = CheckpointOpener(disk.opener()).open(kQwenPath);
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

/// The bytes that identity.h describes, spelt out once more for a table of one extent that is given whole.
std::string described(const Table& table, const std::string& file) {
  std::string out = gguf_text("rowtide table identity 1");
  out += number(table.rows) + number(table.row_values) + number(table.row_bytes);
  out += gguf_text(row_format_name(table.row_format));
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
  const Extent& extent = table.extents[0];
  out += number(extent.rows) + number(extent.header_bytes) + file.substr(0, extent.header_bytes);
  const std::string rows = file.substr(extent.offset, table.bytes());
  const std::uint64_t blocks = (rows.size() + 4095) / 4096;
  for (std::uint64_t i = 0; i < std::min<std::uint64_t>(blocks, 64); ++i) {
    const std::uint64_t index = blocks == 1 ? 0 : i * (blocks - 1) / (std::min<std::uint64_t>(blocks, 64) - 1);
    out += number(index) + rows.substr(index * 4096, 4096);
  }
  return out;
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
  opened.table.extents[0].header_bytes = 0;
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
  const Extent& extent = opened.table.extents[0];
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
  opened.table.extents[0].path = "elsewhere";
  opened.table.name = "renamed";
  EXPECT_EQ(opened.identity(), before);
}

TEST(Identity, TellsTablesOfTheSameShapeApart) {
  const std::string bytes = qwen_sample().bytes();
  std::set<std::string> seen = {Opened(bytes).identity()};
  const auto expect_new = [&](std::string changed) {
    EXPECT_TRUE(seen.insert(Opened(std::move(changed)).identity()).second);
  };
  const std::uint64_t offset = Opened(bytes).table.extents[0].offset;
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
    opened.table.extents[0].header_bytes = 0;
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
  table.extents[0].header_bytes = 0;
  const std::string rows = bytes.substr(table.extents[0].offset, table.bytes());
  // 100 rows, 300 rows, 24 rows: no cut falls on a block.
  table.extents.clear();
  std::uint64_t first = 0;
  std::string expected = gguf_text("rowtide table identity 1") + number(424) + number(32) + number(34) +
                         gguf_text("q8_0") + gguf_text("none");
  table.addressing = nullptr;
  for (const std::uint64_t count : {100u, 300u, 24u}) {
    const std::string path = "part" + std::to_string(first);
    opened.disk.add(path, std::string(7, 'h') + rows.substr(first * 34, count * 34));
    table.extents.push_back({path, 7, first, count, 7});
    expected += number(count) + number(7) + std::string(7, 'h');
    first += count;
  }
  for (std::uint64_t index = 0; index * 4096 < rows.size(); ++index)
    expected += number(index) + rows.substr(index * 4096, 4096);
  EXPECT_EQ(opened.identity(), digest(expected));
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
