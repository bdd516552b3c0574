// What batches ask of a drive: how many reads, how many at once, and how many turns of the drive they wait for.
#include <gtest/gtest.h>

#include <random>
#include <set>
#include <thread>

#include "support/sanitized.h"
#include "support/virtual_drive.h"

namespace rowtide {
namespace {

std::vector<RowId> uniform_ids(std::size_t count, std::uint64_t rows, unsigned seed) {
  std::mt19937_64 random(seed);
  std::vector<RowId> ids(count);
  for (RowId& id : ids) id = random() % rows;
  return ids;
}

/// Blocks that hold a byte of one of the rows.
std::size_t blocks_of(const Table& table, std::span<const RowId> ids) {
  std::set<std::pair<std::uint32_t, std::uint64_t>> blocks;
  const auto map = *RowMap::make(table);
  for (const RowId id : ids) {
    const auto place = map.parts()[0].place(id);
    for (std::uint64_t at = place.offset / VirtualDrive::kBlockBytes;
         at <= (place.offset + table.row_bytes - 1) / VirtualDrive::kBlockBytes; ++at) {
      blocks.insert({place.file, at});
    }
  }
  return blocks.size();
}

struct Cold {
  std::shared_ptr<VirtualDrive> drive;
  std::shared_ptr<Store> store;
  std::unique_ptr<Reader> reader;
};
Cold cold(const Table& table, Mode mode, std::size_t channels = 64, std::uint64_t memory_bytes = 64 * kMiB) {
  auto drive = std::make_shared<VirtualDrive>(table, channels);
  auto store = open_on(drive, {.memory_bytes = memory_bytes, .mode = mode});
  auto reader = *store->reader();
  return {drive, store, std::move(reader)};
}

// No window around a row: of a table of 8 GiB, a row brings the one or two blocks that it lies in.
TEST(Batches, UniformRowsBringTheirOwnBlocksAndNoMore) {
  const Table table = rule_table(160, {53'700'000});
  for (const Mode mode : {Mode::kDisk, Mode::kCache}) {
    auto [drive, store, reader] = cold(table, mode);
    std::size_t needed = 0;
    constexpr int kRows = 2000;
    const int batches = is_slow() ? 4 : 50;
    for (int batch = 0; batch < batches; ++batch) {
      const auto ids = uniform_ids(kRows, table.rows, static_cast<unsigned>(batch));
      ASSERT_TRUE(reads_rule_rows(*reader, table, ids));
      needed += blocks_of(table, ids);
    }
    const Counters done = store->counters();
    EXPECT_LE(done.blocks, needed);  // fewer where the cache had a row
    EXPECT_GE(done.blocks, needed - needed / 100);
    EXPECT_LE(done.bytes_read, done.blocks * VirtualDrive::kBlockBytes);
    EXPECT_LE(drive->bytes(), static_cast<std::uint64_t>(batches) * kRows * 2 * VirtualDrive::kBlockBytes);
  }
}

TEST(Batches, AllMissesOfASmallBatchAreInFlightTogether) {
  for (const std::size_t rows : {1u, 16u, 48u, 64u}) {
    auto [drive, store, reader] = cold(rule_table(90, {10'000'000}), Mode::kCache, 16);
    const auto ids = uniform_ids(rows, drive->table().rows, 1);
    std::vector<std::byte> out(rows * 90);
    ASSERT_TRUE(reader->begin(ids, raw(out)).ok());
    EXPECT_EQ(drive->queue(0).submitted, rows);  // the caller may compute meanwhile
    EXPECT_EQ(drive->queue(0).in_flight_most, rows);
    ASSERT_TRUE(reader->finish().ok());
    ASSERT_TRUE(are_rule_rows(drive->table(), ids, out));
    EXPECT_EQ(drive->turns(), (rows + 15) / 16);  // serial: as many turns as rows
  }
}

TEST(Batches, MoreMissesThanTheQueueIsDeepKeepTheDriveBusy) {
  for (const std::size_t rows : {280u, 2048u}) {
    auto [drive, store, reader] = cold(rule_table(90, {10'000'000}), Mode::kCache, 32);
    const auto ids = uniform_ids(rows, drive->table().rows, 2);
    ASSERT_TRUE(reads_rule_rows(*reader, drive->table(), ids));
    EXPECT_LE(drive->turns(), drive->reads() / 32 + 2) << rows;
    EXPECT_LE(10 * drive->turns(), rows);
  }
}

// One deep batch of a whole chunk instead of a read a row; no block is read twice.
TEST(Batches, AHundredThousandRowsAreOneDeepBatch) {
  const Table table = rule_table(264, {3'000'000});
  for (const Mode mode : {Mode::kDisk, Mode::kCache}) {
    auto [drive, store, reader] = cold(table, mode, 64, 256 * kMiB);
    drive->watch_blocks();
    const auto ids = uniform_ids(is_slow() ? 20'000 : 100'000, table.rows, 3);
    ASSERT_TRUE(reads_rule_rows(*reader, table, ids));
    EXPECT_EQ(drive->blocks_again(), 0u);
    EXPECT_EQ(drive->blocks_seen(), blocks_of(table, ids));
    EXPECT_LE(10 * drive->turns(), ids.size());
    EXPECT_EQ(store->counters().blocks, drive->blocks_seen());
  }
}

// 20,000 positions of 16 rows, chunk by chunk: a mapping without advice would stop at each block that is not there.
TEST(Batches, ATraceInChunksWaitsForFewTurns) {
  const Table table = rule_table(160, {2'000'000}, 8);
  auto [drive, store, reader] = cold(table, Mode::kCache);
  std::size_t stops = 0;
  for (unsigned chunk = 0; chunk < (is_slow() ? 2 : 20); ++chunk) {
    const auto ids = uniform_ids(std::size_t{1000} * 16, table.rows, chunk);
    ASSERT_TRUE(reads_rule_rows(*reader, table, ids));
    stops += blocks_of(table, ids);
  }
  EXPECT_LE(drive->reads(), stops);
  EXPECT_LE(10 * drive->turns(), stops);
}

TEST(Batches, TheSamePrefillAgainReadsNothing) {
  const Table table = rule_table(160, {2'000'000}, 8);
  auto [drive, store, reader] = cold(table, Mode::kCache);
  const auto ids = uniform_ids(std::size_t{4096} * 16, table.rows, 4);
  ASSERT_TRUE(reads_rule_rows(*reader, table, ids));
  const std::uint64_t first_turns = drive->turns(), first_reads = drive->reads();
  EXPECT_GT(first_turns, 100u);
  ASSERT_TRUE(reads_rule_rows(*reader, table, ids));
  EXPECT_EQ(drive->turns(), first_turns);
  EXPECT_EQ(drive->reads(), first_reads);
  EXPECT_EQ(store->counters().hits, ids.size());
}

// A bulk batch has all of the drive when an urgent one comes: that is let in at once, and while it is there, the bulk
// one keeps to a third of the limit.
TEST(Batches, AnUrgentOneIsLetInBesideABulkOneThatHoldsAll) {
  constexpr std::uint64_t kLimit = 64;
  const Table table = rule_table(90, {20'000'000}, 8);
  auto [drive, store, bulk] = cold(table, Mode::kCache, 1);
  auto urgent = *store->reader();
  const auto many = uniform_ids(4096, table.rows, 1), few = uniform_ids(16, table.rows, 2);
  std::vector<std::byte> many_out(many.size() * 90), few_out(few.size() * 90);
  ASSERT_TRUE(bulk->begin(many, raw(many_out)).ok());
  EXPECT_EQ(drive->queue(0).in_flight_most, kLimit);
  ASSERT_TRUE(urgent->begin(few, raw(few_out)).ok());
  EXPECT_EQ(drive->queue(1).submitted, few.size());

  drive->restart_most(0);
  ASSERT_TRUE(bulk->finish().ok());
  EXPECT_LE(drive->queue(0).in_flight_most, kLimit / 3);
  ASSERT_TRUE(urgent->finish().ok());
  EXPECT_LE(drive->queue(1).turns_most, kLimit + few.size());
  EXPECT_TRUE(are_rule_rows(table, many, many_out));
  EXPECT_TRUE(are_rule_rows(table, few, few_out));
}

/// The most turns that a read of an urgent batch of 16 waits, on a drive that does one read at a time, while
/// `bulk_clients` run large batches back to back.
std::uint64_t urgent_turns_beside(unsigned bulk_clients, bool with_prefetch) {
  const Table table = rule_table(90, {20'000'000}, 8);
  auto drive = std::make_shared<VirtualDrive>(table, 1);
  auto store = open_on(drive, {.memory_bytes = 64 * kMiB, .mode = Mode::kCache});
  auto urgent = *store->reader();  // queue 0
  std::atomic<bool> stop = false;
  std::vector<std::thread> clients;
  for (unsigned client = 0; client < bulk_clients; ++client) {
    clients.emplace_back([&, client] {
      auto bulk = *store->reader();
      std::vector<std::byte> out(std::size_t{4096} * table.row_bytes);
      for (unsigned seed = 1000 * client + 1; !stop; ++seed) {
        ASSERT_TRUE(bulk->read(uniform_ids(4096, table.rows, seed), raw(out)).ok());
      }
    });
  }
  for (unsigned step = 0; step < 100; ++step) {
    if (with_prefetch) store->prefetch(uniform_ids(256, table.rows, 5'000'000 + step));
    EXPECT_TRUE(reads_rule_rows(*urgent, table, uniform_ids(16, table.rows, 9'000'000 + step)));
    if (bulk_clients > 0) std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  stop = true;
  for (auto& client : clients) client.join();
  EXPECT_EQ(drive->queue(0).in_flight_most, 16u);  // all at once, whatever is in flight already
  return drive->queue(0).turns_most;
}

TEST(Batches, UrgentOnesWaitAtMostFiveTimesAsLongBesideBulkOnes) {
  const std::uint64_t alone = urgent_turns_beside(0, false);
  EXPECT_EQ(alone, 16u);
  EXPECT_LE(urgent_turns_beside(1, false), 5 * alone);
  // The limit is the device's, not the client's; a batch that was let in with a single read adds that one.
  EXPECT_LE(urgent_turns_beside(3, true), 5 * alone + 4);
}

}  // namespace
}  // namespace rowtide
