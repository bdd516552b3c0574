#include "store/batch_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

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

BatchPlan plan_of(const Table& table, const std::vector<RowId>& ids) {
  BatchPlan plan;
  for (std::size_t i = 0; i < ids.size(); ++i) plan.add(ids[i], i);
  plan.make(*RowMap::make(table), table.rows, table.row_bytes, kBlock, kRunMax);
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
    const Table table = shape_only(rows, random() % 100'000, 32 * (1 + random() % 40));
    const RowMap map = *RowMap::make(table);
    std::vector<RowId> ids(random() % 4000);
    for (RowId& id : ids) id = random() % rows;
    const auto plan = plan_of(table, ids);

    std::vector<std::pair<RowId, std::uint64_t>> got, want;
    std::set<std::uint64_t> blocks;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      want.emplace_back(ids[i], i);
      const std::uint64_t offset = map.place(ids[i]).offset;
      for (std::uint64_t b = offset / kBlock; b <= (offset + table.row_bytes - 1) / kBlock; ++b) blocks.insert(b);
    }
    std::uint64_t read_blocks = 0;
    for (const rowtide::Run& run : plan.runs()) {
      read_blocks += run.bytes / kBlock;
      EXPECT_EQ(run.offset % kBlock, 0u);
      EXPECT_LE(run.bytes, kRunMax);
      for (std::uint32_t i = run.first_request; i < run.end_request; ++i) {
        const Request request = plan.requests()[i];
        got.emplace_back(request.row(), request.position());
        EXPECT_GE(map.place(request.row()).offset, run.offset);
        EXPECT_LE(map.place(request.row()).offset + table.row_bytes, run.offset + run.bytes);
      }
    }
    std::sort(want.begin(), want.end());
    EXPECT_EQ(got, want);
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

}  // namespace
}  // namespace rowtide
