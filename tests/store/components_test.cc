// Tables whose rows lie in several places: every row is whole, whatever lies at the edge of a file, a page or a block.
#include <gtest/gtest.h>

#include <filesystem>
#include <numeric>
#include <random>

#include "store/batch_plan.h"
#include "store/open_store.h"
#include "support/random_table.h"
#include "support/soon.h"
#include "support/virtual_drive.h"

namespace rowtide {
namespace {

/// Of each component: the first and last row of every extent, and rows whose part straddles a block of 512 bytes.
std::vector<RowId> rows_at_edges(const Table& table) {
  std::vector<RowId> ids;
  for (const Component& component : table.components) {
    for (const Extent& extent : component.extents) {
      ids.push_back(extent.first_row);
      ids.push_back(extent.first_row + extent.rows - 1);
      for (std::uint64_t i = 0; i < extent.rows; ++i) {
        const std::uint64_t begin = extent.offset + i * component.row_bytes;
        if (begin / 512 != (begin + component.row_bytes - 1) / 512) ids.push_back(extent.first_row + i);
      }
    }
  }
  return ids;
}

const std::vector<RandomTableShape>& shapes() {
  static const std::vector<RandomTableShape> all = {
      // Engram's rows: scales beside their values, in files cut at other rows, ending with the file.
      {.format = RowFormat::kFp8Ue8m0,
       .row_values = 256,
       .extent_rows = {700, 1, 1299},
       .bytes_behind = 0,
       .parts = {{8, {1, 1500, 499}}}},
      // NVFP4, its scales in one file more.
      {.format = RowFormat::kNvfp4,
       .extent_rows = {1234, 2000},
       .offset = 4095,
       .bytes_behind = 3,
       .parts = {{10, {3000, 233, 1}}},
       .scale = 0.001F},
      // Four components, one of them a byte wide and one wider than a block.
      {.format = RowFormat::kBf16,
       .row_values = 5000,
       .extent_rows = {60, 40},
       .offset = 1,
       .bytes_behind = 0,
       .parts = {{1, {100}}, {999, {1, 1, 98}}, {2000, {99, 1}}}},
  };
  return all;
}

class Components : public testing::TestWithParam<Mode> {};
INSTANTIATE_TEST_SUITE_P(, Components, testing::Values(Mode::kDisk, Mode::kCache, Mode::kResident),
                         [](const auto& mode) { return std::string(mode_name(mode.param)); });

TEST_P(Components, RowsAreExactAtEveryEdge) {
  for (const RandomTableShape& shape : shapes()) {
    for (const std::uint32_t bundle_rows : {1u, 8u}) {
      TempDir dir;
      Table table = make_random_table(dir, shape, bundle_rows);
      table.bundle_rows = bundle_rows;
      const std::string& last = table.components[0].extents.back().path;
      if (shape.bytes_behind == 0) {
        ASSERT_NE(std::filesystem::file_size(last) % 512, 0u);
      }
      auto store = Store::open(table, {.memory_bytes = 64 * kMiB, .mode = GetParam()});
      ASSERT_TRUE(store.ok()) << store.error().message;
      auto reader = *(*store)->reader();
      auto ids = rows_at_edges(table);
      ASSERT_GT(ids.size(), 50u);
      for (int round = 0; round < 3; ++round) {
        ASSERT_TRUE(reads_reference_rows(*reader, table, ids)) << row_format_name(shape.format);
        std::shuffle(ids.begin(), ids.end(), std::mt19937(static_cast<unsigned>(round)));
      }
      for (const RowId id : rows_at_edges(table)) {  // and none of them helped by a neighbour
        if (id % 17 != 0) continue;
        ASSERT_TRUE(reads_reference_rows(*reader, table, {{id}}));
      }
    }
  }
}

TEST_P(Components, AllRowsOfATable) {
  for (const RandomTableShape& shape : shapes()) {
    TempDir dir;
    const Table table = make_random_table(dir, shape, 7);
    auto store = *Store::open(table, {.memory_bytes = 64 * kMiB, .mode = GetParam()});
    std::vector<RowId> all(table.rows);
    std::iota(all.begin(), all.end(), 0);
    auto reader = *store->reader();
    ASSERT_TRUE(reads_reference_rows(*reader, table, all));
    if (GetParam() == Mode::kResident) {
      ASSERT_TRUE(soon([&] { return store->counters().resident_rows == table.rows; }));
      ASSERT_TRUE(reads_reference_rows(*reader, table, all));
      EXPECT_EQ(store->counters().resident_bytes, table.bytes());
    }
  }
}

TEST(ComponentsOfADrive, CountWhatTheyNeed) {
  auto drive = std::make_shared<VirtualDrive>(rule_table(264, {100'000, 100'000}, 1, 8));
  auto store = open_on(drive, {.mode = Mode::kDisk});
  auto reader = *store->reader();
  drive->watch_blocks();
  std::vector<RowId> ids;
  for (RowId id = 0; id < 200'000; id += 37) ids.insert(ids.end(), {id, id});
  ASSERT_TRUE(reads_rule_rows(*reader, drive->table(), ids));
  const Counters done = store->counters();
  EXPECT_EQ(done.unique_rows, ids.size() / 2);
  EXPECT_EQ(done.blocks, drive->blocks_seen());
  EXPECT_LE(done.bytes_read, drive->bytes());  // which were asked for beyond the end of a file, too
  EXPECT_GT(done.bytes_read, drive->bytes() - 4 * VirtualDrive::kBlockBytes);
  EXPECT_EQ(done.reads, drive->reads());
}

TEST(ComponentsOfADrive, AHintBringsAllOfARow) {
  auto drive = std::make_shared<VirtualDrive>(rule_table(264, {100'000, 100'000}, 8, 8));
  auto store = open_on(drive, {.memory_bytes = 64 * kMiB, .mode = Mode::kCache});
  std::vector<RowId> ids(8 * 500);
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = i * 49;
  store->prefetch(ids);
  ASSERT_TRUE(soon([&] { return store->counters().prefetched_rows == ids.size(); }));
  auto reader = *store->reader();
  ASSERT_TRUE(reads_rule_rows(*reader, drive->table(), ids));
  EXPECT_EQ(store->counters().hits, ids.size());
  EXPECT_EQ(store->counters().reads, 0u);
}

TEST(ComponentsInFiles, AFileCutShortIsNamed) {
  TempDir dir;
  const Table table = make_random_table(dir, shapes()[0], 1);
  const Extent& scales = table.components[1].extents[2];
  std::filesystem::resize_file(scales.path, scales.offset + scales.rows * 8 - 1);
  const auto store = Store::open(table);
  ASSERT_FALSE(store.ok());
  EXPECT_EQ(store.error().code, ErrorCode::kMalformed);
  EXPECT_NE(store.error().message.find(scales.path), std::string::npos) << store.error().message;
}

}  // namespace
}  // namespace rowtide
