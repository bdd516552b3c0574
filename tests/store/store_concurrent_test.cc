// Many readers of one store at once.
#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <thread>

#include "store/batch_plan.h"
#include "store/open_store.h"
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

}  // namespace
}  // namespace rowtide
