// A batch costs system calls by the queue, not by the row.
#include <gtest/gtest.h>

#include "io/block_source.h"
#include "store/batch_plan.h"
#include "store/open_store.h"
#include "support/emulated.h"
#include "support/random_table.h"
#include "support/sanitized.h"
#include "support/system_calls.h"

namespace rowtide {
namespace {

constexpr std::size_t kRowsRead = 2048;
constexpr RowId kApart = 5;  // so that no two rows share a read

class SystemCalls : public testing::Test {
 protected:
  void SetUp() override {
    if (is_emulated()) GTEST_SKIP() << "an emulator lets nothing be traced";
  }
};

TEST_F(SystemCalls, AreOneForHalfAQueueOfReads) {
  TempDir dir;
  const Table table =
      make_random_table(dir, {.format = RowFormat::kF32, .row_values = 512, .extent_rows = {kRowsRead * kApart}}, 1);
  const auto paths = RowMap::make(table)->paths();
  if ((*io::open_block_source(paths, {}))->method().find("io_uring") == std::string::npos) {
    GTEST_SKIP() << "io_uring is refused here";
  }
  const auto calls = system_calls_of([&]() -> std::function<bool()> {
    auto store =
        *open_store(table, *io::open_block_source(paths, {.depth = 64}), {.mode = Mode::kDisk, .queue_depth = 64});
    std::shared_ptr<Reader> reader = *store->reader();
    std::vector<RowId> ids(kRowsRead);
    for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = kApart * i;
    return [store, reader, ids, out = std::vector<std::byte>(kRowsRead * table.row_bytes)]() mutable {
      return reader->read(ids, raw(out)).ok() && store->counters().reads == kRowsRead;
    };
  });
  ASSERT_TRUE(calls.has_value());
  EXPECT_GT(*calls, 0u);
  EXPECT_LE(*calls, kRowsRead * 300 / 8192);
}

/// Of a batch whose rows are all in memory.
std::optional<std::size_t> calls_of_hits(std::size_t rows, Mode mode) {
  TempDir dir;
  Table table = make_random_table(dir, {.extent_rows = {40'000}}, 2);
  table.bundle_rows = 8;
  return system_calls_of([&]() -> std::function<bool()> {
    auto store = *Store::open(table, {.memory_bytes = std::uint64_t{64} << 20, .mode = mode});
    std::shared_ptr<Reader> reader = *store->reader();
    std::vector<RowId> ids(rows);
    for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = i;
    auto out = std::make_shared<std::vector<std::byte>>(rows * table.row_bytes);
    const auto all_hit = [store, reader, ids, out] {
      const std::uint64_t before = store->counters().hits;
      return reader->read(ids, raw(*out)).ok() && store->counters().hits - before == ids.size();
    };
    for (int warming = 0; warming < 2 || (mode == Mode::kResident && store->counters().resident_rows != table.rows);
         ++warming) {
      (void)all_hit();
    }
    return all_hit;
  });
}

TEST_F(SystemCalls, AreNoneForABatchThatIsAllInMemory) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer makes its own";
  for (const Mode mode : {Mode::kCache, Mode::kResident}) {
    for (const std::size_t rows : {16u, 2048u, 8192u}) {
      const auto calls = calls_of_hits(rows, mode);
      ASSERT_TRUE(calls.has_value());
      EXPECT_LE(*calls, 1u) << mode_name(mode) << ", " << rows << " rows";  // the one that ends the child
    }
  }
}

TEST_F(SystemCalls, OfAskingHelpersAreFewWhateverTheRows) {
  for (const Mode mode : {Mode::kCache, Mode::kResident}) {
    const auto calls = calls_of_hits(32'768, mode);
    ASSERT_TRUE(calls.has_value());
    EXPECT_LE(*calls, 40u) << mode_name(mode);
  }
}

}  // namespace
}  // namespace rowtide
