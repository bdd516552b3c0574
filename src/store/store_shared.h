// What a store's readers share.
#pragma once

#include <atomic>
#include <memory>
#include <thread>

#include "cache/cached_table.h"
#include "io/block_source.h"
#include "rowtide/store.h"
#include "store/batch_plan.h"
#include "store/memory_budget.h"
#include "store/resident_rows.h"

namespace rowtide {

/// A store's counters while they are counted: readers add once a batch, anybody takes snapshots.
class Totals {
 public:
  void add(const Counters& batch);
  /// The counts; memory is not among them.
  Counters snapshot() const;

 private:
  std::atomic<std::uint64_t> batches_{0}, rows_{0}, bundles_{0}, hits_{0}, unique_rows_{0}, blocks_{0}, reads_{0},
      bytes_read_{0}, wait_ns_{0}, prefetched_rows_{0}, prefetched_rows_used_{0}, prefetch_reads_{0},
      prefetch_bytes_read_{0};
};

struct StoreShared {
  Table table;
  RowMap map;
  std::unique_ptr<io::BlockSource> source;
  std::uint32_t depth = 0;
  std::shared_ptr<MemoryBudget> budget;
  BundleCache* cache = nullptr;  // the budget's; null: none is used
  std::shared_ptr<CachedTable> cached;
  MemoryBudget::Part index_memory;
  std::jthread index_commit;               // has the index's memory provided meanwhile
  std::unique_ptr<ResidentRows> resident;  // null: the table is not to be resident
  Totals totals;
  std::atomic<bool> slow_drive_told{false};
  std::atomic<std::uint32_t> demand{0};  // batches in progress that somebody waits for
};

}  // namespace rowtide
