// Reader over a block source: plans a batch, keeps the queue full, decodes rows as their blocks arrive.
#pragma once

#include <atomic>
#include <memory>

#include "io/block_source.h"
#include "rowtide/store.h"
#include "store/batch_plan.h"

namespace rowtide {

/// A store's counters while they are counted: readers add once a batch, anybody takes snapshots.
class Totals {
 public:
  void add(const Counters& batch);
  void add_memory(std::int64_t bytes) { memory_bytes_.fetch_add(bytes, std::memory_order_relaxed); }
  Counters snapshot() const;

 private:
  std::atomic<std::uint64_t> batches_{0}, rows_{0}, unique_rows_{0}, bundles_{0}, blocks_{0}, reads_{0}, bytes_read_{0},
      wait_ns_{0};
  std::atomic<std::int64_t> memory_bytes_{0};
};

/// What all readers of a store share.
struct StoreShared {
  Table table;
  RowMap map;
  std::unique_ptr<io::BlockSource> source;
  std::uint32_t depth;
  Totals totals;
};

/// kIo or kResource when no queue or buffer is to be had.
Result<std::unique_ptr<Reader>> make_disk_reader(std::shared_ptr<StoreShared> store);

}  // namespace rowtide
