// A table that becomes resident: exact at every moment of its filling, whatever the filling meets.
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "fault/faulty_source.h"
#include "rowtide/log.h"
#include "support/sanitized.h"
#include "support/soon.h"
#include "support/virtual_drive.h"

namespace rowtide {
namespace {

constexpr std::size_t kFilling = 0, kDemand = 1;  // queues of the drive

/// 8 MiB; odd everywhere. Each row whole, or its last `split` bytes elsewhere.
Table several_extents(std::uint64_t split) { return rule_table(90, {30'000, 1, 777, 60'000}, 8, split); }

std::vector<RowId> some_ids(std::uint64_t rows, unsigned seed, std::size_t count = 400) {
  std::mt19937_64 random(seed);
  std::vector<RowId> ids(count);
  for (RowId& id : ids) id = random() % rows;
  return ids;
}

class Resident : public testing::TestWithParam<std::uint64_t> {
 protected:
  void open(io::Spoil spoil = {}) {
    std::unique_ptr<io::BlockSource> source = std::make_unique<VirtualSource>(drive_, 64);
    if (spoil) source = std::make_unique<io::FaultySource>(std::move(source), std::move(spoil));
    auto opened = open_store(drive_->table(), std::move(source),
                             {.memory_bytes = 128 * kMiB, .mode = Mode::kResident, .queue_depth = 64});
    ASSERT_TRUE(opened.ok()) << opened.error().message;
    store_ = *std::move(opened);
    ASSERT_EQ(store_->mode(), Mode::kResident);
    reader_ = *store_->reader();
  }
  ~Resident() override {
    drive_->let_all_go(kFilling);
    drive_->let_all_go(kDemand);
    set_log_sink({});
  }

  RowId filled() const { return store_->counters().resident_rows; }
  testing::AssertionResult exact(unsigned seed) const {
    return reads_rule_rows(*reader_, drive_->table(), some_ids(drive_->table().rows, seed));
  }
  testing::AssertionResult all_exact() const {
    std::vector<RowId> all(drive_->table().rows);
    for (RowId id = 0; id < all.size(); ++id) all[id] = id;
    return reads_rule_rows(*reader_, drive_->table(), all);
  }
  bool full() const {
    return soon([this] { return filled() == drive_->table().rows; });
  }

  std::shared_ptr<VirtualDrive> drive_ = std::make_shared<VirtualDrive>(several_extents(GetParam()));
  std::shared_ptr<Store> store_;
  std::unique_ptr<Reader> reader_;
};

INSTANTIATE_TEST_SUITE_P(, Resident, testing::Values(0, 10, 45), [](const auto& split) {
  return split.param == 0 ? std::string("whole_rows") : "parts_of_" + std::to_string(split.param);
});

TEST_P(Resident, IsExactAtEveryStepOfTheFilling) {
  drive_->hold(kFilling);
  open();
  RowId before = 0;
  for (unsigned step = 0; before < drive_->table().rows; ++step) {
    ASSERT_LT(step, 100u);
    ASSERT_TRUE(exact(step));
    drive_->let_go(kFilling, GetParam() == 0 ? 1 : 4);  // so many bring every component further
    ASSERT_TRUE(soon([&] { return filled() > before; })) << "after " << before << " rows";
    before = filled();
    std::vector<RowId> at_the_mark;
    for (RowId id = before - 3; id < std::min(before + 3, drive_->table().rows); ++id) at_the_mark.push_back(id);
    ASSERT_TRUE(reads_rule_rows(*reader_, drive_->table(), at_the_mark));
    ASSERT_TRUE(exact(1000 + step));
  }
  ASSERT_TRUE(all_exact());
  EXPECT_EQ(store_->counters().resident_bytes, drive_->table().bytes());
}

TEST_P(Resident, IsExactWhileItIsFilledAndManyRead) {
  for (int round = 0; round < 5; ++round) {
    open();
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < 3; ++t) {
      threads.emplace_back([&, t] {
        auto reader = *store_->reader();
        for (unsigned batch = 0; batch < 30; ++batch) {
          const auto ids = some_ids(drive_->table().rows, 100 * t + batch, t == 0 ? 16 : 1500);
          ASSERT_TRUE(reads_rule_rows(*reader, drive_->table(), ids));
          if (t == 2) store_->prefetch(ids);
        }
      });
    }
    for (auto& thread : threads) thread.join();
    ASSERT_TRUE(full());
    ASSERT_TRUE(exact(1));
    reader_.reset();
    store_.reset();
  }
}

// The request is honoured: after the filling, nothing is read, whatever is asked for or hinted at.
TEST_P(Resident, ReadsNothingMoreOnceItIsFull) {
  open();
  ASSERT_TRUE(full());
  const std::uint64_t reads = drive_->reads();
  EXPECT_LE(drive_->bytes(), drive_->table().bytes() + 16 * VirtualDrive::kBlockBytes);  // each byte once
  store_->prefetch(some_ids(drive_->table().rows, 7));
  ASSERT_TRUE(all_exact());
  ASSERT_TRUE(exact(1));
  a_while();
  EXPECT_EQ(drive_->reads(), reads);
  const Counters done = store_->counters();
  EXPECT_EQ(done.hits, done.rows);
  EXPECT_EQ(done.reads, 0u);
  EXPECT_EQ(done.bytes_read, 0u);
}

// What is not filled yet is read; the filling leaves the drive to batches that somebody waits for.
TEST_P(Resident, TheFillingWaitsWhileSomebodyWaits) {
  drive_->hold(kDemand);
  drive_->hold(kFilling);
  open();
  const std::vector<RowId> last = {drive_->table().rows - 1};
  std::vector<std::byte> out(drive_->table().row_bytes);
  ASSERT_TRUE(reader_->begin(last, raw(out)).ok());
  ASSERT_EQ(drive_->queue(kDemand).submitted, drive_->table().components.size());
  const std::uint64_t before = drive_->queue(kFilling).submitted;
  drive_->let_all_go(kFilling);
  a_while();
  EXPECT_LE(drive_->queue(kFilling).submitted, std::max<std::uint64_t>(before, 8));
  EXPECT_LT(filled(), drive_->table().rows);
  drive_->let_all_go(kDemand);
  ASSERT_TRUE(reader_->finish().ok());
  ASSERT_TRUE(are_rule_rows(drive_->table(), last, out));
  EXPECT_TRUE(full());
}

TEST_P(Resident, AFillingThatFailsLeavesExactServiceAndSaysSo) {
  for (const std::uint64_t fails : {0u, 1u, 5u, 8u}) {
    std::mutex mutex;
    std::vector<std::string> lines;
    set_log_sink([&](LogLevel, std::string_view line) {
      std::lock_guard lock(mutex);
      lines.emplace_back(line);
    });
    std::atomic<std::uint64_t> large = 0;
    open([&](std::uint64_t, const io::ReadRequest& request, std::int32_t result) {
      const bool of_the_filling = request.bytes > 64 * 1024 || request.offset == 8192;
      return of_the_filling && large++ == fails ? -EIO : result;
    });
    const auto said = [&] {
      std::lock_guard lock(mutex);
      return std::count_if(lines.begin(), lines.end(), [](const std::string& line) {
        return line.find("table.weight") != std::string::npos && line.find("filling it stopped") != std::string::npos;
      });
    };
    ASSERT_TRUE(soon([&] { return said() == 1; })) << fails;
    EXPECT_LT(filled(), drive_->table().rows);
    ASSERT_TRUE(exact(1));
    ASSERT_TRUE(all_exact());
    ASSERT_TRUE(exact(2));
    EXPECT_EQ(said(), 1);
    reader_.reset();
    store_.reset();
    set_log_sink({});
  }
}

TEST_P(Resident, ShortAndInterruptedReadsAreAskedForAgain) {
  open([](std::uint64_t number, const io::ReadRequest& request, std::int32_t result) {
    if (number % 5 == 0) return -EINTR;
    if (number % 7 == 0) return -EAGAIN;
    if (number % 3 == 0 && request.bytes > 4096) return std::min(result, 8192);
    return result;
  });
  ASSERT_TRUE(full());
  ASSERT_TRUE(all_exact());
  EXPECT_EQ(store_->counters().reads, 0u);
}

TEST_P(Resident, MayBeClosedAtAnyMoment) {
  for (int round = 0; round < (is_slow() ? 12 : 60); ++round) {
    open();
    if (round % 3 == 1) {
      ASSERT_TRUE(soon([&] { return filled() >= static_cast<RowId>(1000 * round); }));
    }
    if (round % 3 == 2) {
      ASSERT_TRUE(exact(static_cast<unsigned>(round)));
    }
    reader_.reset();
    store_.reset();
  }
}

TEST_P(Resident, AReaderLivesOnWhenTheStoreIsClosed) {
  open();
  store_.reset();
  ASSERT_TRUE(all_exact());
}

// The counters say what is held: of a table, what has been filled so far.
TEST_P(Resident, CountsWhatHasBeenFilled) {
  drive_->hold(kFilling);
  open();
  EXPECT_EQ(store_->counters().resident_bytes, 0u);
  drive_->let_go(kFilling, 2);
  ASSERT_TRUE(soon([&] { return filled() > 0; }));
  EXPECT_LE(store_->counters().resident_bytes, 3 * kMiB);
}

}  // namespace
}  // namespace rowtide
