// Reads that fail, come back short or out of order: the batch is exact or an error, and the next one works.
#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>
#include <numeric>
#include <thread>

#include "fault/faulty_source.h"
#include "rowtide/log.h"
#include "store/batch_plan.h"
#include "store/open_store.h"
#include "support/random_table.h"

namespace rowtide {
namespace {

/// Rows whole, and rows with their scales elsewhere.
RandomTableShape shape_of(bool in_parts, std::uint64_t rows) {
  if (!in_parts) return {.extent_rows = {rows}};
  return {.format = RowFormat::kNvfp4, .extent_rows = {rows / 2, rows - rows / 2}, .parts = {{10, {7, rows - 7}}}};
}

struct FaultWay {
  bool uring, in_parts;
};

class StoreFault : public testing::TestWithParam<FaultWay> {
 protected:
  StoreFault() : table_(make_random_table(dir_, shape_of(GetParam().in_parts, 20'000), 1)) {
    for (RowId id = 0; id < table_.rows; id += 53) ids_.push_back(id * 7 % table_.rows);
    out_.resize(ids_.size() * table_.row_bytes);
  }

  std::shared_ptr<Store> open(io::Spoil spoil) {
    auto source = io::open_block_source(RowMap::make(table_)->paths(), {.allow_uring = GetParam().uring});
    return *open_store(table_, std::make_unique<io::FaultySource>(*std::move(source), std::move(spoil)),
                       {.mode = Mode::kDisk});
  }

  TempDir dir_;
  Table table_;
  std::vector<RowId> ids_;
  std::vector<std::byte> out_;
};
INSTANTIATE_TEST_SUITE_P(, StoreFault,
                         testing::Values(FaultWay{true, false}, FaultWay{false, false}, FaultWay{true, true},
                                         FaultWay{false, true}),
                         [](const auto& way) {
                           return std::string(way.param.uring ? "uring" : "pread") +
                                  (way.param.in_parts ? "_in_parts" : "");
                         });

TEST_P(StoreFault, TheNthReadFailsForEveryN) {
  const auto rows = reference_rows(table_, ids_);
  for (std::uint64_t n = 0;; ++n) {
    std::uint64_t reads = 0;
    std::uint32_t failed_file = 0;
    auto store = open([&](std::uint64_t number, const io::ReadRequest& request, std::int32_t result) {
      ++reads;
      if (number != n) return result;
      failed_file = request.file;
      return -EIO;
    });
    auto reader = *store->reader();
    std::fill(out_.begin(), out_.end(), std::byte{0});
    const auto read = reader->read(ids_, raw(out_));
    if (reads <= n) {  // the batch needs no more than n reads
      ASSERT_TRUE(read.ok());
      ASSERT_EQ(out_, rows);
      ASSERT_GT(n, 50u);
      return;
    }
    ASSERT_FALSE(read.ok()) << n;
    EXPECT_EQ(read.error().code, ErrorCode::kIo);
    EXPECT_NE(read.error().message.find(RowMap::make(table_)->paths()[failed_file]), std::string::npos);
    EXPECT_NE(read.error().message.find("table.weight"), std::string::npos);
    ASSERT_TRUE(reader->read(ids_, raw(out_)).ok()) << n;
    ASSERT_EQ(out_, rows) << n;
  }
}

TEST_P(StoreFault, ShortAndInterruptedReadsAreAskedForAgain) {
  auto store = open([](std::uint64_t number, const io::ReadRequest& request, std::int32_t result) {
    if (number % 5 == 0) return -EINTR;
    if (number % 7 == 0) return -EAGAIN;
    if (number % 3 == 0 && request.bytes > 4096) return std::min(result, 4096);
    return result;
  });
  auto reader = *store->reader();
  std::vector<RowId> all(table_.rows);
  std::iota(all.begin(), all.end(), 0);
  out_.resize(all.size() * table_.row_bytes);
  const auto read = reader->read(all, raw(out_));
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(out_, reference_rows(table_, all));
}

TEST_P(StoreFault, ADeviceThatNeverDeliversIsGivenUp) {
  auto store = open([](std::uint64_t, const io::ReadRequest&, std::int32_t) { return -EAGAIN; });
  auto reader = *store->reader();
  const auto read = reader->read(ids_, raw(out_));
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.error().code, ErrorCode::kIo);
}

TEST_P(StoreFault, ASlowDriveIsToldOnceWithItsFigure) {
  table_ = make_random_table(dir_, shape_of(GetParam().in_parts, 200'000), 2);
  for (std::size_t i = 0; i < ids_.size(); ++i)
    ids_[i] = i * table_.rows / ids_.size();  // no two in neighbouring blocks
  std::vector<std::string> lines;
  set_log_sink([&](LogLevel, std::string_view line) {
    // Where io_uring is refused, that is told as well.
    if (line.find("random reads a second") != std::string_view::npos) lines.emplace_back(line);
  });
  auto store = open([](std::uint64_t, const io::ReadRequest&, std::int32_t result) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return result;
  });
  auto reader = *store->reader();
  for (int batch = 0; batch < 2; ++batch) ASSERT_TRUE(reader->read(ids_, raw(out_)).ok());
  set_log_sink({});
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_NE(lines[0].find(table_.components[0].extents[0].path), std::string::npos) << lines[0];
}

// One read in 32 fails, batch after batch: what succeeds is exact.
TEST_P(StoreFault, ExactOrFailedUnderManyErrors) {
  auto store = open([](std::uint64_t number, const io::ReadRequest&, std::int32_t result) {
    return number * 2654435761u % 1000 < 2 ? -EIO : result;
  });
  auto reader = *store->reader();
  const auto rows = reference_rows(table_, ids_);
  int good = 0, bad = 0;
  for (int batch = 0; batch < 200; ++batch) {
    std::fill(out_.begin(), out_.end(), std::byte{0});
    if (reader->read(ids_, raw(out_)).ok()) {
      ++good;
      ASSERT_EQ(out_, rows);
    } else {
      ++bad;
    }
  }
  EXPECT_GT(good, 0);
  EXPECT_GT(bad, 0);
}

}  // namespace
}  // namespace rowtide
