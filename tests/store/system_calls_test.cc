// A batch costs system calls by the queue, not by the row.
#include <gtest/gtest.h>

#include "io/block_source.h"
#include "store/batch_plan.h"
#include "store/open_store.h"
#include "support/random_table.h"
#include "support/system_calls.h"

namespace rowtide {
namespace {

constexpr std::size_t kRows = 2048;
constexpr RowId kApart = 5;  // so that no two rows share a read

TEST(SystemCalls, AreOneForHalfAQueueOfReads) {
  TempDir dir;
  const Table table =
      make_random_table(dir, {.format = RowFormat::kF32, .row_values = 512, .extent_rows = {kRows * kApart}}, 1);
  const auto paths = RowMap::make(table)->paths();
  if ((*io::open_block_source(paths, {}))->method().find("io_uring") == std::string::npos) {
    GTEST_SKIP() << "io_uring is refused here";
  }
  const auto calls = system_calls_of([&]() -> std::function<bool()> {
    auto store = *open_store(table, *io::open_block_source(paths, {.depth = 64}), {.mode = Mode::kDisk, .queue_depth = 64});
    std::shared_ptr<Reader> reader = *store->reader();
    std::vector<RowId> ids(kRows);
    for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = kApart * i;
    return [store, reader, ids, out = std::vector<std::byte>(kRows * table.row_bytes)]() mutable {
      return reader->read(ids, raw(out)).ok() && store->counters().reads == kRows;
    };
  });
  ASSERT_TRUE(calls.has_value());
  EXPECT_GT(*calls, 0u);
  EXPECT_LE(*calls, kRows * 300 / 8192);
}

}  // namespace
}  // namespace rowtide
