// Many readers of one store at once, and the limit they share.
#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <thread>

#include "io/in_flight_limit.h"
#include "store/batch_plan.h"
#include "store/disk_store.h"
#include "support/random_table.h"

namespace rowtide {
namespace {

void hammer(bool uring) {
  TempDir dir;
  const Table table = make_random_table(dir, {.extent_rows = {3000, 2000}}, 1);
  auto store =
      *open_store(table, *io::open_block_source(RowMap::make(table)->paths(), {.depth = 8, .allow_uring = uring}),
                  {.queue_depth = 8});
  std::atomic<bool> stop = false;
  std::thread watcher([&] {
    while (!stop) {
      const Counters counters = store->counters();
      ASSERT_GE(counters.rows, counters.unique_rows);
      std::this_thread::yield();
    }
  });
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 6; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937_64 random(t);
      auto reader = *store->reader();
      for (int round = 0; round < 40; ++round) {
        std::vector<RowId> ids(t % 2 == 0 ? 16 : 1500);
        for (RowId& id : ids) id = random() % table.rows;
        std::vector<std::byte> out(ids.size() * table.row_bytes);
        const auto read = reader->read(ids, raw(out));
        ASSERT_TRUE(read.ok()) << read.error().message;
        ASSERT_TRUE(out == reference_rows(table, ids));
      }
    });
  }
  for (auto& thread : threads) thread.join();
  stop = true;
  watcher.join();
  EXPECT_EQ(store->counters().batches, 240u);
}

TEST(StoreConcurrent, ReadersOverIoUring) { hammer(true); }
TEST(StoreConcurrent, ReadersOverThePreadPool) { hammer(false); }

TEST(InFlightLimit, SharesEvenlyAndNeverStarves) {
  io::InFlightLimit limit(8);
  limit.join();
  EXPECT_EQ(limit.acquire(100, 0), 8u);
  EXPECT_EQ(limit.acquire(100, 8), 0u);
  limit.join();
  EXPECT_EQ(limit.acquire(5, 0), 1u);  // none free: one all the same
  limit.release(6);                    // the first party lets six go, and may not take them back
  EXPECT_EQ(limit.acquire(100, 2 + 2), 0u);
  EXPECT_EQ(limit.acquire(100, 1), 3u);  // the second grows to its half
  limit.release(2 + 4);
  limit.leave();
  limit.leave();
  EXPECT_EQ(limit.acquire(100, 0), 8u);
}

TEST(InFlightLimit, IsOneForADevice) {
  auto first = io::InFlightLimit::of_device(42, 16);
  EXPECT_EQ(io::InFlightLimit::of_device(42, 32), first);
  EXPECT_NE(io::InFlightLimit::of_device(43, 16), first);
}

}  // namespace
}  // namespace rowtide
