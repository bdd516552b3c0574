// A table cut into shards: whatever is asked for at their borders, by a reader or as a hint, every block that is read
// holds a byte of a row that was asked for. (Rows counted in the whole table must not be taken for rows of a shard.)
#include <gtest/gtest.h>

#include <mutex>
#include <set>

#include "fault/faulty_source.h"
#include "store/batch_plan.h"
#include "store/open_store.h"
#include "support/random_table.h"
#include "support/soon.h"

namespace rowtide {
namespace {

constexpr std::uint32_t kBorderHeads = 2;

/// What was read, from any queue of the source.
struct Reads {
  std::mutex mutex;
  std::vector<io::ReadRequest> requests;
};

class ShardBorders : public testing::Test {
 protected:
  ShardBorders() {
    table_.bundle_rows = kBorderHeads;
    auto source = io::open_block_source(RowMap::make(table_)->paths(), {});
    block_bytes_ = (*source)->block_bytes();
    auto record = [reads = reads_](std::uint64_t, const io::ReadRequest& request, std::int32_t result) {
      std::lock_guard lock(reads->mutex);
      reads->requests.push_back(request);
      return result;
    };
    store_ = *open_store(table_, std::make_unique<io::FaultySource>(*std::move(source), record),
                         {.memory_bytes = kMemoryBytesMin});
  }

  /// The blocks that hold a byte of these rows, as (file, block).
  std::set<std::pair<std::uint32_t, std::uint64_t>> blocks_of(std::span<const RowId> ids) const {
    std::set<std::pair<std::uint32_t, std::uint64_t>> blocks;
    for (const RowId id : ids) {
      for (const Component& component : table_.components) {
        std::uint32_t file = first_file(component);
        for (const Extent& extent : component.extents) {
          if (id >= extent.first_row && id < extent.first_row + extent.rows) {
            const std::uint64_t start = extent.offset + (id - extent.first_row) * component.row_bytes;
            for (std::uint64_t block = start / block_bytes_; block * block_bytes_ < start + component.row_bytes;
                 ++block) {
              blocks.insert({file, block});
            }
          }
          ++file;
        }
      }
    }
    return blocks;
  }

  void expect_only(std::span<const RowId> ids) {
    const auto wanted = blocks_of(ids);
    std::set<std::pair<std::uint32_t, std::uint64_t>> read;
    std::lock_guard lock(reads_->mutex);
    for (const io::ReadRequest& request : reads_->requests) {
      for (std::uint64_t at = request.offset; at < request.offset + request.bytes; at += block_bytes_) {
        read.insert({request.file, at / block_bytes_});
      }
    }
    EXPECT_EQ(read, wanted);
    reads_->requests.clear();
  }

  std::uint32_t first_file(const Component& component) const {
    std::uint32_t file = 0;
    for (const Component& before : table_.components) {
      if (&before == &component) break;
      file += static_cast<std::uint32_t>(before.extents.size());
    }
    return file;
  }

  TempDir dir_;
  Table table_ = make_random_table(dir_, {.extent_rows = {40'000, 1, 30'001, 20'003}}, 45);
  std::uint64_t block_bytes_ = 0;
  std::shared_ptr<Reads> reads_ = std::make_shared<Reads>();
  std::shared_ptr<Store> store_;
};

TEST_F(ShardBorders, ReadersAndHintsReadNothingElse) {
  auto reader = *store_->reader();
  reads_->requests.clear();  // probes
  RowId apart = 1000;        // so that nothing is in the cache
  std::vector<RowId> borders = {0, table_.rows - 1};
  for (const Extent& extent : table_.components.front().extents) {
    for (RowId row = extent.first_row; row < extent.first_row + 3; ++row) borders.push_back(row);
    for (RowId back = 1; back <= 3; ++back) borders.push_back(extent.first_row + extent.rows - back);
  }
  for (const RowId border : borders) {
    if (border >= table_.rows) continue;
    for (const bool hint : {false, true}) {
      const std::vector<RowId> ids = {border, apart += 700};
      if (hint) {
        const std::uint64_t before = store_->counters().prefetched_rows;
        store_->prefetch(ids);
        ASSERT_TRUE(soon([&] { return store_->counters().prefetched_rows == before + kBorderHeads; })) << border;
        expect_only(ids);
      }
      std::vector<std::byte> out(ids.size() * table_.row_bytes);
      ASSERT_TRUE(reader->read(ids, raw(out)).ok());
      EXPECT_EQ(out, reference_rows(table_, ids)) << border;
      expect_only(hint ? std::span<const RowId>() : std::span<const RowId>(ids));
    }
  }
}

}  // namespace
}  // namespace rowtide
