#include "store/batch_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <tuple>

#include "support/random_table.h"

namespace rowtide {
namespace {

constexpr std::uint32_t kBlock = 4096;
constexpr std::uint32_t kRunMax = 65536;

Table shape_only(std::uint64_t rows, std::uint64_t offset, std::uint64_t row_values = 160) {
  Table table;
  table.name = "t";
  table.rows = rows;
  table.row_values = row_values;
  table.row_format = RowFormat::kIq4Nl;
  table.row_bytes = *row_bytes(table.row_format, row_values);
  table.components = {{"values", table.row_bytes, {{"file", offset, 0, rows}}}};
  return table;
}

/// A component or two more, in the same file and in another.
void split(Table& table, std::mt19937_64& random) {
  const std::uint64_t behind = table.components[0].extents[0].offset + table.bytes();
  table.components[0].row_bytes -= 9;
  table.components.push_back({"scales", 8, {{"file", behind + random() % 1000, 0, table.rows}}});
  table.components.push_back({"biases", 1, {{"other file", random() % 1000, 0, table.rows}}});
  if (table.rows < 2) return;
  const std::uint64_t cut = 1 + random() % (table.rows - 1);
  table.components[1].extents[0].rows = cut;
  table.components[1].extents.push_back({"third file", random() % 1000, cut, table.rows - cut});
}

BatchPlan plan_of(const Table& table, const std::vector<RowId>& ids) {
  BatchPlan plan;
  for (std::size_t i = 0; i < ids.size(); ++i) plan.add(ids[i], i);
  plan.make(*RowMap::make(table), table.rows, kBlock, kRunMax);
  return plan;
}

TEST(BatchPlan, NeighboursShareOneReadAndDuplicatesOneRow) {
  const auto plan = plan_of(shape_only(1000, 0), {1, 0, 1, 2});
  ASSERT_EQ(plan.runs().size(), 1u);
  EXPECT_EQ(plan.runs()[0].bytes, kBlock);
  EXPECT_EQ(plan.unique_rows(), 3u);
  EXPECT_EQ(plan.blocks(), 1u);
  std::vector<std::uint64_t> positions;
  for (const Request request : plan.requests()) positions.push_back(request.position());
  EXPECT_EQ(positions, (std::vector<std::uint64_t>{1, 0, 2, 3}));
}

TEST(BatchPlan, ARowThatStraddlesBlocksGetsBoth) {
  const auto plan = plan_of(shape_only(1000, 0), {45});  // bytes 4050 to 4140
  ASSERT_EQ(plan.runs().size(), 1u);
  EXPECT_EQ(plan.runs()[0].offset, 0u);
  EXPECT_EQ(plan.runs()[0].bytes, 2 * kBlock);
  EXPECT_EQ(plan.blocks(), 2u);
}

TEST(BatchPlan, EmptyBatchNeedsNothing) {
  const auto plan = plan_of(shape_only(1000, 0), {});
  EXPECT_TRUE(plan.runs().empty());
  EXPECT_EQ(plan.blocks(), 0u);
}

// For random batches of many densities: every request lies whole in its run, every id is there once for
// each time it was asked, the block count is that of a set, and no block is read twice except where a run
// had to end within a row.
TEST(BatchPlan, HoldsForRandomBatches) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 300; ++round) {
    const std::uint64_t rows = 1 + random() % (round % 2 == 0 ? 3000 : 400'000'000);
    Table table = shape_only(rows, random() % 100'000, 32 * (1 + random() % 40));
    if (round % 3 == 0) split(table, random);
    const RowMap map = *RowMap::make(table);
    std::vector<RowId> ids(random() % 4000);
    for (RowId& id : ids) id = random() % rows;
    const auto plan = plan_of(table, ids);

    std::vector<std::vector<std::pair<RowId, std::uint64_t>>> got(map.parts().size());
    std::vector<std::pair<RowId, std::uint64_t>> want;
    std::set<std::tuple<std::size_t, std::uint32_t, std::uint64_t>> blocks;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      want.emplace_back(ids[i], i);
      for (std::size_t component = 0; component < map.parts().size(); ++component) {
        const RowMap::Part& part = map.parts()[component];
        const auto [file, offset] = part.place(ids[i]);
        const std::uint64_t last = (offset + part.bytes - 1) / kBlock;
        for (std::uint64_t b = offset / kBlock; b <= last; ++b) blocks.insert({component, file, b});
      }
    }
    std::uint64_t read_blocks = 0;
    for (const rowtide::Run& run : plan.runs()) {
      read_blocks += run.bytes / kBlock;
      EXPECT_EQ(run.offset % kBlock, 0u);
      EXPECT_LE(run.bytes, kRunMax);
      const RowMap::Part& part = map.parts()[run.component];
      for (std::uint32_t i = run.first_request; i < run.end_request; ++i) {
        const Request request = plan.requests()[i];
        got[run.component].emplace_back(request.row(), request.position());
        const auto [file, offset] = part.place(request.row());
        EXPECT_EQ(file, run.file);
        EXPECT_GE(offset, run.offset);
        EXPECT_LE(offset + part.bytes, run.offset + run.bytes);
      }
    }
    std::sort(want.begin(), want.end());
    for (const auto& of_component : got) EXPECT_EQ(of_component, want);
    EXPECT_EQ(plan.unique_rows(), std::set<RowId>(ids.begin(), ids.end()).size());
    EXPECT_EQ(plan.blocks(), blocks.size());
    EXPECT_GE(read_blocks, blocks.size());
    EXPECT_LE(read_blocks, blocks.size() + blocks.size() * kBlock / (kRunMax - 2 * kBlock) + 1);
  }
}

TEST(BatchPlan, RefusesExtentsThatDoNotCoverTheTable) {
  Table table = shape_only(10, 0);
  table.components[0].extents[0].rows = 9;
  EXPECT_EQ(RowMap::make(table).error().code, ErrorCode::kUsage);
  table = shape_only(10, 0);
  table.components[0].extents[0].first_row = 1;
  EXPECT_FALSE(RowMap::make(table).ok());
  table = shape_only(10, ~0ull - 5);
  EXPECT_FALSE(RowMap::make(table).ok());
  table = shape_only(10, 0);
  table.row_bytes = 91;
  EXPECT_FALSE(RowMap::make(table).ok());
  table = shape_only(0, 0);
  EXPECT_FALSE(RowMap::make(table).ok());
}

TEST(BatchPlan, RefusesComponentsThatMakeUpNoRow) {
  std::mt19937_64 random(1);
  const auto refused = [](const Table& table, const char* words) {
    const auto map = RowMap::make(table);
    ASSERT_FALSE(map.ok());
    EXPECT_NE(map.error().message.find(words), std::string::npos) << map.error().message;
  };
  Table table = shape_only(10, 0);
  split(table, random);
  ASSERT_TRUE(RowMap::make(table).ok());
  table.components[0].row_bytes -= 1;
  refused(table, "do not make up a row of 90 bytes");
  table.components[0].row_bytes += 2;
  refused(table, "do not make up a row of 90 bytes");
  table.components[0].row_bytes -= 1;
  table.components[2].extents[0].rows = 9;
  refused(table, "its biases hold 9 of 10 rows");
  table.components[2].extents[0].rows = 10;
  table.components[1].extents[1].first_row += 1;
  refused(table, "the extents of its scales leave row");
  table.components.clear();
  refused(table, "0 components; 1 to 4 can be served");
  table.components.resize(5);
  refused(table, "5 components; 1 to 4 can be served");
}

TEST(BatchPlan, RefusesWhatItsFormatCannotBe) {
  Table table = shape_only(10, 0);
  table.scale = 0.5F;
  EXPECT_EQ(RowMap::make(table).error().code, ErrorCode::kUsage);
  table.row_format = RowFormat::kNvfp4;
  EXPECT_TRUE(RowMap::make(table).ok());
  table = shape_only(10, 0);
  table.row_format = RowFormat::kF32;
  table.row_bytes = 640;
  table.components[0].row_bytes = 640;
  ASSERT_TRUE(RowMap::make(table).ok());
  std::mt19937_64 random(1);
  split(table, random);
  EXPECT_EQ(RowMap::make(table).error().code, ErrorCode::kUnsupported);
}

}  // namespace
}  // namespace rowtide
