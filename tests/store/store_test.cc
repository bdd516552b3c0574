// Every way of reading against the reference, on tables of every awkward shape.
#include "rowtide/store.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <random>

#include "io/file.h"
#include "store/batch_plan.h"
#include "store/open_store.h"
#include "support/random_table.h"

namespace rowtide {
namespace {

struct Way {
  const char* name;
  bool uring, direct;
  Mode mode;
};
constexpr Way kWays[] = {
    {"uring_direct", true, true, Mode::kDisk},        {"pread_direct", false, true, Mode::kDisk},
    {"pread_buffered", false, false, Mode::kDisk},    {"uring_cached", true, true, Mode::kCache},
    {"pread_cached", false, true, Mode::kCache},      {"uring_resident", true, true, Mode::kResident},
    {"pread_resident", false, false, Mode::kResident}};

std::shared_ptr<Store> open_by(const Table& table, const Way& way, StoreOptions options = {}) {
  options.mode = way.mode;
  auto source = io::open_block_source(RowMap::make(table)->paths(),
                                      {.depth = options.queue_depth != 0 ? options.queue_depth : 256,
                                       .allow_uring = way.uring,
                                       .allow_direct = way.direct});
  EXPECT_TRUE(source.ok()) << source.error().message;
  auto store = open_store(table, *std::move(source), options);
  EXPECT_TRUE(store.ok()) << store.error().message;
  return *store;
}

void expect_rows(Reader& reader, const Table& table, const std::vector<RowId>& ids) {
  std::vector<std::byte> got(ids.size() * table.row_bytes);
  const auto read = reader.read(ids, raw(got));
  ASSERT_TRUE(read.ok()) << read.error().message;
  ASSERT_TRUE(got == reference_rows(table, ids)) << ids.size() << " rows";
}

class StoreWays : public testing::TestWithParam<Way> {};
INSTANTIATE_TEST_SUITE_P(, StoreWays, testing::ValuesIn(kWays), [](const auto& way) { return way.param.name; });

TEST_P(StoreWays, RowsEqualTheReference) {
  const RandomTableShape shapes[] = {
      {},
      {RowFormat::kQ8_0, 32, {20000}, 7, 0},                     // ends with the file, mid-block
      {RowFormat::kBf16, 160, {1000, 1, 777, 4096}, 4095, 513},  // several files, odd sizes
      {RowFormat::kF32, 3000, {300}, 0, 1},                      // rows of three blocks
      {RowFormat::kF32, 40000, {20}, 100, 0},                    // rows larger than a run
      {RowFormat::kF32, 1, {3}, 0, 0},                           // a file smaller than a block
  };
  std::uint32_t bundle_rows = 0;
  for (const RandomTableShape& shape : shapes) {
    ++bundle_rows;  // 1 to 6: batches that end within a bundle, too
    TempDir dir;
    Table table = make_random_table(dir, shape, 1);
    table.bundle_rows = bundle_rows;
    auto store = open_by(table, GetParam());
    auto reader = *store->reader();
    std::mt19937_64 random(2);
    std::vector<RowId> all(table.rows);
    std::iota(all.begin(), all.end(), 0);
    expect_rows(*reader, table, all);
    expect_rows(*reader, table, {});
    expect_rows(*reader, table, {0, table.rows - 1, 0});
    for (int round = 0; round < 30; ++round) {
      std::vector<RowId> ids(1 + random() % std::min<std::uint64_t>(3000, 2'000'000 / table.row_bytes));
      const std::uint64_t among = 1 + random() % table.rows;  // few distinct rows to many
      for (RowId& id : ids) id = random() % among;
      expect_rows(*reader, table, ids);
    }
    std::shuffle(all.begin(), all.end(), random);
    expect_rows(*reader, table, all);
  }
}

TEST_P(StoreWays, CountsWhatItDid) {
  if (GetParam().mode == Mode::kResident) GTEST_SKIP() << "how many rows come from memory depends on the filling";
  TempDir dir;
  const Table table = make_random_table(dir, {.extent_rows = {100'000}, .offset = 0}, 3);
  auto store = open_by(table, GetParam());
  auto reader = *store->reader();
  expect_rows(*reader, table, {0, 1, 1, 99'999, 5'000});
  const Counters counters = store->counters();
  EXPECT_EQ(counters.batches, 1u);
  EXPECT_EQ(counters.rows, 5u);
  EXPECT_EQ(counters.unique_rows, 4u);
  EXPECT_EQ(counters.reads, 3u);
  EXPECT_EQ(counters.blocks, 3u);
  EXPECT_GT(counters.bytes_read, 2u * 4096);
  EXPECT_LE(counters.bytes_read, 3u * 4096);
  EXPECT_GT(counters.wait_ns, 0u);
  EXPECT_GT(counters.memory_bytes, 1u << 20);
  reader.reset();
  EXPECT_EQ(store->counters().buffer_bytes, 0u);
}

TEST(Store, NamesItsMethod) {
  TempDir dir;
  const Table table = make_random_table(dir, {}, 4);
  EXPECT_EQ(open_by(table, kWays[2])->method(), "16 pread threads, buffered I/O, 4096-byte blocks, depth 256");
}

TEST(Store, DecodesAsAsked) {
  TempDir dir;
  const Table table = make_random_table(dir, {.format = RowFormat::kQ8_0, .row_values = 64}, 5);
  auto store = *Store::open(table);
  auto reader = *store->reader();
  const std::vector<RowId> ids = {7, 3, 7, 4999};
  std::vector<float> as_f32(ids.size() * 64), want_f32(ids.size() * 64);
  std::vector<std::uint16_t> as_bf16(ids.size() * 64), want_bf16(ids.size() * 64);
  ASSERT_TRUE(reader->read(ids, f32(as_f32)).ok());
  ASSERT_TRUE(reader->read(ids, bf16(as_bf16)).ok());
  const auto rows = reference_rows(table, ids);
  decode_f32(table.coding(), rows.data(), ids.size(), want_f32.data());
  decode_bf16(table.coding(), rows.data(), ids.size(), want_bf16.data());
  EXPECT_EQ(std::memcmp(as_f32.data(), want_f32.data(), want_f32.size() * sizeof(float)), 0);
  EXPECT_EQ(as_bf16, want_bf16);
}

TEST(Store, BeginLetsTheCallerComputeAndFinishCompletes) {
  TempDir dir;
  const Table table = make_random_table(dir, {}, 6);
  auto store = *Store::open(table);
  auto first = *store->reader();
  auto second = *store->reader();
  std::vector<RowId> ids(table.rows);
  std::iota(ids.begin(), ids.end(), 0);
  std::vector<std::byte> out(ids.size() * table.row_bytes);
  ASSERT_TRUE(first->begin(ids, raw(out)).ok());
  const auto again = first->begin(ids, raw(out));
  ASSERT_FALSE(again.ok());
  EXPECT_EQ(again.error().code, ErrorCode::kUsage);
  expect_rows(*second, table, {1, 2, 3});  // a batch left open keeps no other reader waiting
  ids.assign(ids.size(), 0);               // the ids are the caller's again
  ASSERT_TRUE(first->finish().ok());
  std::iota(ids.begin(), ids.end(), 0);
  EXPECT_EQ(out, reference_rows(table, ids));
  EXPECT_TRUE(first->finish().ok());
}

TEST(Store, AReaderMayGoAwayWithABatchInFlight) {
  TempDir dir;
  const Table table = make_random_table(dir, {}, 7);
  for (const Way& way : kWays) {
    auto store = open_by(table, way);
    std::vector<RowId> ids(table.rows);
    std::iota(ids.begin(), ids.end(), 0);
    std::vector<std::byte> out(ids.size() * table.row_bytes);
    {
      auto reader = *store->reader();
      ASSERT_TRUE(reader->begin(ids, raw(out)).ok());
    }
    auto reader = *store->reader();
    expect_rows(*reader, table, ids);
  }
}

TEST(Store, RefusesWhatMakesNoSense) {
  TempDir dir;
  const Table table = make_random_table(dir, {}, 8);
  auto store = *Store::open(table);
  auto reader = *store->reader();
  std::vector<std::byte> out(2 * table.row_bytes);

  const auto outside = reader->read(std::vector<RowId>{1, 5000}, raw(out));
  ASSERT_FALSE(outside.ok());
  EXPECT_EQ(outside.error().code, ErrorCode::kOutOfRange);
  EXPECT_EQ(outside.error().message, "table table.weight: row 5000 is not within its 5000 rows");
  EXPECT_FALSE(reader->read(std::vector<RowId>{1, static_cast<RowId>(-1)}, raw(out)).ok());

  const auto short_output = reader->read(std::vector<RowId>{1}, raw(out));
  ASSERT_FALSE(short_output.ok());
  EXPECT_EQ(short_output.error().code, ErrorCode::kUsage);
  expect_rows(*reader, table, {1, 2});

  EXPECT_EQ(Store::open(table, {.queue_depth = 4096}).error().code, ErrorCode::kUsage);
  Table gone = table;
  gone.components[0].extents[0].path += "-gone";
  EXPECT_EQ(Store::open(gone).error().code, ErrorCode::kNotFound);
}

TEST(Store, RefusesAFileThatIsTooShort) {
  TempDir dir;
  const Table table = make_random_table(dir, {.bytes_behind = 0}, 9);
  std::filesystem::resize_file(table.components[0].extents[0].path,
                               table.components[0].extents[0].offset + table.bytes() - 1);
  const auto store = Store::open(table);
  ASSERT_FALSE(store.ok());
  EXPECT_EQ(store.error().code, ErrorCode::kMalformed);
  EXPECT_NE(store.error().message.find(table.components[0].extents[0].path), std::string::npos);
}

TEST(Store, RefusesAFileThatStandsInThePlaceOfTheOneOpened) {
  const TempDir dir;
  Table table = make_random_table(dir, {}, 9);
  Extent& extent = table.components[0].extents[0];
  extent.file_stamp = (*io::open_file(extent.path))->stamp();
  ASSERT_NE(extent.file_stamp, 0u);
  EXPECT_TRUE(Store::open(table, {.memory_bytes = kMemoryBytesMin}).ok());
  const std::string other = dir.file("other");
  std::filesystem::copy_file(extent.path, other);
  std::filesystem::rename(other, extent.path);  // the same bytes, but who knows?
  auto refused = Store::open(table, {.memory_bytes = kMemoryBytesMin});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kMismatch);
  EXPECT_NE(refused.error().message.find(extent.path + ": was replaced"), std::string::npos) << refused.error().message;
}

TEST(Store, AFileCutShortWhileServingIsAnErrorAndNotARow) {
  for (const Way& way : kWays) {
    if (way.mode == Mode::kResident) continue;  // needs the file no more once it is filled
    TempDir dir;
    const Table table = make_random_table(dir, {}, 10);
    auto store = open_by(table, way);
    auto reader = *store->reader();
    expect_rows(*reader, table, {0});
    std::filesystem::resize_file(table.components[0].extents[0].path,
                                 table.components[0].extents[0].offset + table.bytes() / 2);
    std::vector<std::byte> out(table.row_bytes);
    const auto read = reader->read(std::vector<RowId>{4999}, raw(out));
    ASSERT_FALSE(read.ok()) << way.name;
    EXPECT_EQ(read.error().code, ErrorCode::kIo);
    EXPECT_NE(read.error().message.find("row 4999"), std::string::npos) << read.error().message;
    EXPECT_NE(read.error().message.find("cut short"), std::string::npos) << read.error().message;
    expect_rows(*reader, table, {0, 1, 2});
  }
}

/// Of a file that became empty a read tells only that there is nothing where it read, not where the end is.
TEST(Store, AFileThatWasEmptiedIsNotSaidToEndWhereTheRowLay) {
  for (const Way& way : kWays) {
    if (way.mode == Mode::kResident) continue;  // needs the file no more once it is filled
    TempDir dir;
    const Table table = make_random_table(dir, {}, 10);
    auto store = open_by(table, way);
    auto reader = *store->reader();
    std::filesystem::resize_file(table.components[0].extents[0].path, 0);
    std::vector<std::byte> out(table.row_bytes);
    const auto read = reader->read(std::vector<RowId>{4999}, raw(out));
    ASSERT_FALSE(read.ok()) << way.name;
    EXPECT_NE(read.error().message.find("has nothing from byte"), std::string::npos) << read.error().message;
    EXPECT_EQ(read.error().message.find("ends at"), std::string::npos) << read.error().message;
  }
}

TEST(Store, DepthOneStillServesEverything) {
  TempDir dir;
  const Table table = make_random_table(dir, {}, 11);
  for (const Way& way : kWays) {
    auto store = open_by(table, way, {.queue_depth = 1});
    auto reader = *store->reader();
    std::vector<RowId> ids;
    for (RowId id = 0; id < table.rows; id += 97) ids.push_back(id);
    expect_rows(*reader, table, ids);
  }
}

}  // namespace
}  // namespace rowtide
