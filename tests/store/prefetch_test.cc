// Hints: rows that were hinted at are there when they are asked for, nobody waits for a hint, none does harm.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <numeric>
#include <random>
#include <thread>

#include "fault/faulty_source.h"
#include "support/sanitized.h"
#include "support/soon.h"
#include "support/virtual_drive.h"

namespace rowtide {
namespace {

constexpr std::uint32_t kHeads = 8;

constexpr std::uint64_t kApart = 97;  // rows between two of one block each

/// Whole bundles that share no row, from `first` on; their rows lie `apart`.
std::vector<RowId> bundles(std::uint64_t first, std::uint64_t count, std::uint64_t apart = kApart) {
  std::vector<RowId> ids(count * kHeads);
  for (std::uint64_t i = 0; i < ids.size(); ++i) ids[i] = (first * kHeads + i) * apart;
  return ids;
}

/// Rows that hints have brought once they go no further.
std::uint64_t as_far_as_it_goes(const Store& store) {
  std::uint64_t brought = 0;
  int unchanged = 0;
  EXPECT_TRUE(soon([&] {
    a_while();
    const std::uint64_t before = std::exchange(brought, store.counters().prefetched_rows);
    unchanged = brought == before && brought > 0 ? unchanged + 1 : 0;
    return unchanged == 8;  // fewer, and a machine busy elsewhere looks like the end
  }));
  return brought;
}

class Prefetch : public testing::Test {
 protected:
  static constexpr std::size_t kDemand = 0, kHints = 1;  // queues of the drive

  void open(std::uint64_t memory_bytes = 32 * kMiB, Mode mode = Mode::kCache, std::uint64_t row_bytes = 90) {
    drive_ = std::make_shared<VirtualDrive>(rule_table(row_bytes, {400'000'000}, kHeads));
    store_ = open_on(drive_, {.memory_bytes = memory_bytes, .mode = mode});
    reader_ = *store_->reader();
  }
  ~Prefetch() override {
    if (drive_) {
      drive_->let_all_go(kDemand);
      drive_->let_all_go(kHints);
    }
  }

  bool brought(std::uint64_t rows) const {
    return soon([&] { return store_->counters().prefetched_rows >= rows; });
  }
  testing::AssertionResult reads(std::span<const RowId> ids) const {
    return reads_rule_rows(*reader_, drive_->table(), ids);
  }

  std::shared_ptr<VirtualDrive> drive_;
  std::shared_ptr<Store> store_;
  std::unique_ptr<Reader> reader_;
};

TEST_F(Prefetch, RowsAreThereWhenTheyAreAskedFor) {
  open();
  const auto ids = bundles(0, 600);
  store_->prefetch(ids);
  ASSERT_TRUE(brought(ids.size()));
  ASSERT_TRUE(reads(ids));
  const Counters done = store_->counters();
  EXPECT_EQ(done.hits, ids.size());
  EXPECT_EQ(done.reads, 0u);
  EXPECT_EQ(done.prefetched_rows, ids.size());
  EXPECT_EQ(done.prefetched_rows_used, ids.size());
  EXPECT_EQ(drive_->queue(kDemand).submitted, 0u);
  store_->prefetch(ids);  // all there: nothing to bring
  store_->prefetch(bundles(600, 1));
  ASSERT_TRUE(brought(ids.size() + kHeads));
  EXPECT_EQ(store_->counters().prefetched_rows, ids.size() + kHeads);
}

// A hint larger than the cache: what was brought stays until it was asked for.
TEST_F(Prefetch, DoesNotEvictItsOwn) {
  open();
  constexpr std::uint64_t kChunk = 400;
  const std::uint64_t count = is_slow() ? 48'000 : 100'000;  // of 32 MiB, the cache has room for 28,000
  const auto ids = bundles(0, count, 3);
  store_->prefetch(ids);
  ASSERT_LT(as_far_as_it_goes(*store_), ids.size());
  const std::span<const RowId> all(ids);
  for (std::uint64_t at = 0; at < count; at += kChunk) {
    ASSERT_TRUE(brought((at + kChunk) * kHeads)) << "stopped at bundle " << at;
    ASSERT_TRUE(reads(all.subspan(at * kHeads, kChunk * kHeads)));
  }
  // The index forgets a bundle now and then where a bucket is full; nothing else may be lost.
  EXPECT_LE(store_->counters().reads, ids.size() / 1000);
  EXPECT_GE(store_->counters().prefetched_rows_used, ids.size() - ids.size() / 1000);
}

TEST_F(Prefetch, IsFollowedForEverThoughTheClientComesFirst) {
  open();
  constexpr std::uint64_t kChunk = 512;
  const std::uint64_t rounds = is_slow() ? 15 : 40;
  for (std::uint64_t round = 0; round < rounds; ++round) {
    const auto ids = bundles(round * kChunk, kChunk);
    drive_->hold(kHints);
    store_->prefetch(ids);
    ASSERT_TRUE(soon([&] {  // in flight already when the client asks for the same rows
      const auto hints = drive_->queue(kHints);
      return hints.submitted > hints.completed;
    })) << "hints are followed no more in round "
        << round;
    ASSERT_TRUE(reads(ids));
    drive_->let_all_go(kHints);
    ASSERT_TRUE(soon([&] {
      const auto hints = drive_->queue(kHints);
      return hints.submitted == hints.completed;
    }));
  }
}

// What one table's hints brought in vain does not let another table's hints run further ahead.
TEST_F(Prefetch, TablesCountApart) {
  open(64 * kMiB);
  store_->prefetch(bundles(0, 30'000));
  const std::uint64_t ahead = as_far_as_it_goes(*store_);
  for (RowId next = 0; store_->counters().prefetched_rows < 2 * ahead; next += 65'536) {
    std::vector<RowId> others(65'536);  // they push out what nobody asks for
    std::iota(others.begin(), others.end(), 300'000'000 + next);
    ASSERT_TRUE(reads(others));
  }

  const auto drive = std::make_shared<VirtualDrive>(drive_->table());
  const auto store = open_on(drive, {.mode = Mode::kCache});
  store->prefetch(bundles(0, 30'000));
  EXPECT_LE(as_far_as_it_goes(*store), ahead);
}

TEST_F(Prefetch, WaitsWhileSomebodyWaits) {
  for (const std::uint64_t count : {2u, 300u}) {  // an urgent batch, a bulk one
    open();
    const auto asked = bundles(0, count);
    std::vector<std::byte> out(asked.size() * drive_->table().row_bytes);
    drive_->hold(kDemand);
    ASSERT_TRUE(reader_->begin(asked, raw(out)).ok());
    store_->prefetch(bundles(1000, 50));
    a_while();
    EXPECT_EQ(drive_->queue(kHints).submitted, 0u) << "beside a batch of " << asked.size() << " rows";
    drive_->let_all_go(kDemand);
    ASSERT_TRUE(reader_->finish().ok());
    ASSERT_TRUE(are_rule_rows(drive_->table(), asked, out));
    EXPECT_TRUE(brought(50 * kHeads));
    reader_.reset();
    store_.reset();
  }
}

TEST_F(Prefetch, OnItsWayTakesNoMoreOfTheDriveWhileAnUrgentBatchWaits) {
  open();
  drive_->hold(kHints);
  store_->prefetch(bundles(100, 200));
  ASSERT_TRUE(soon([&] { return drive_->queue(kHints).submitted > 0; }));
  const auto asked = bundles(0, 2);
  std::vector<std::byte> out(asked.size() * drive_->table().row_bytes);
  drive_->hold(kDemand);
  ASSERT_TRUE(reader_->begin(asked, raw(out)).ok());
  EXPECT_EQ(drive_->queue(kDemand).submitted, asked.size());
  const std::uint64_t before = drive_->queue(kHints).submitted;
  drive_->let_all_go(kHints);
  a_while();
  EXPECT_EQ(drive_->queue(kHints).submitted, before);
  drive_->let_all_go(kDemand);
  ASSERT_TRUE(reader_->finish().ok());
  EXPECT_TRUE(brought(std::uint64_t{200} * kHeads));
}

TEST_F(Prefetch, HintsThatMakeNoSenseAreIgnored) {
  open();
  const RowId rows = drive_->table().rows;
  store_->prefetch({});
  store_->prefetch(std::vector<RowId>{1, 2, 3, 4, 5, 6, 7, rows});
  store_->prefetch(std::vector<RowId>{1, 2, 3, 4, 5, 6, 7, static_cast<RowId>(-1)});
  store_->prefetch(std::vector<RowId>{1, 2, 3});  // less than a bundle
  const auto good = bundles(7, 3);
  store_->prefetch(good);
  ASSERT_TRUE(brought(good.size()));
  EXPECT_EQ(store_->counters().prefetched_rows, good.size());
  ASSERT_TRUE(reads(good));
  EXPECT_EQ(store_->counters().reads, 0u);
}

TEST_F(Prefetch, MoreThanTheQueueHoldsIsDropped) {
  open();
  const auto first = bundles(0, 8);
  store_->prefetch(first);
  for (std::uint64_t hint = 0; hint < 4; ++hint) store_->prefetch(bundles(1000 + hint * 131'072, 131'072));
  ASSERT_TRUE(brought(first.size()));
  ASSERT_TRUE(reads(first));
  EXPECT_LE(store_->counters().memory_bytes, store_->counters().budget_bytes);
}

TEST_F(Prefetch, WithoutACacheHintsAreNothing) {
  open(32 * kMiB, Mode::kDisk);
  store_->prefetch(bundles(0, 100));
  a_while();
  EXPECT_EQ(drive_->queues_opened(), 1u);
  ASSERT_TRUE(reads(bundles(0, 100)));
  EXPECT_EQ(store_->counters().prefetched_rows, 0u);
}

// The reads of hints fail: the rows are read when they are asked for, and nothing of what failed is served.
TEST_F(Prefetch, ReadsThatFailLeaveNothingBehind) {
  drive_ = std::make_shared<VirtualDrive>(rule_table(90, {400'000'000}, kHeads));
  std::atomic<bool> failing = true;
  auto source =
      std::make_unique<io::FaultySource>(std::make_unique<VirtualSource>(drive_, 64),
                                         [&](std::uint64_t number, const io::ReadRequest&, std::int32_t result) {
                                           return failing && number % 3 == 1 ? -EIO : result;
                                         });
  store_ = *open_store(drive_->table(), std::move(source), {.memory_bytes = 32 * kMiB, .queue_depth = 64});
  reader_ = *store_->reader();
  for (std::uint64_t hint = 0; hint < 20; ++hint) store_->prefetch(bundles(256 * hint, 256));
  ASSERT_TRUE(soon([&] { return drive_->reads() > 20; }));
  a_while();
  failing = false;
  for (std::uint64_t hint = 0; hint < 20; ++hint) ASSERT_TRUE(reads(bundles(256 * hint, 256)));
  EXPECT_GT(store_->counters().reads, 0u);
}

TEST_F(Prefetch, AStoreMayBeClosedWhileHintsAreFollowed) {
  for (std::uint64_t round = 0; round < 40; ++round) {
    open();
    store_->prefetch(bundles(0, 20'000));
    if (round % 2 == 0) {
      ASSERT_TRUE(brought(round * 64));
    }
    reader_.reset();
    store_.reset();
  }
}

// The reader lives on; the batch that it has begun must not keep the store from closing.
TEST_F(Prefetch, AStoreMayBeClosedWhileHintsWaitForABatch) {
  open();
  drive_->hold(kHints);
  store_->prefetch(bundles(100, 200));
  ASSERT_TRUE(soon([&] { return drive_->queue(kHints).submitted > 0; }));
  const auto asked = bundles(0, 2);
  std::vector<std::byte> out(asked.size() * drive_->table().row_bytes);
  ASSERT_TRUE(reader_->begin(asked, raw(out)).ok());
  drive_->let_all_go(kHints);
  ::alarm(60);  // what waits for itself ends the program
  store_.reset();
  ::alarm(0);
  ASSERT_TRUE(reader_->finish().ok());
  EXPECT_TRUE(are_rule_rows(drive_->table(), asked, out));
}

// Readers, hints and somebody who watches, all at once.
TEST_F(Prefetch, BesideReadersInUse) {
  open(64 * kMiB);
  std::atomic<bool> stop = false;
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      auto opened = store_->reader();
      ASSERT_TRUE(opened.ok()) << opened.error().message;
      auto& reader = *opened;
      std::mt19937_64 random(t);
      for (int round = 0; round < 60; ++round) {
        const auto ids = bundles(random() % 3000, t == 0 ? 2 : 200);
        if (t == 2) store_->prefetch(bundles(random() % 3000, 300));
        ASSERT_TRUE(reads_rule_rows(*reader, drive_->table(), ids));
      }
    });
  }
  std::thread watcher([&] {
    while (!stop) {
      const Counters now = store_->counters();
      ASSERT_LE(now.prefetched_rows_used, now.prefetched_rows + now.rows);
      ASSERT_LE(now.memory_bytes, now.budget_bytes);
      std::this_thread::yield();
    }
  });
  for (auto& thread : threads) thread.join();
  stop = true;
  watcher.join();
}

}  // namespace
}  // namespace rowtide
