#include "store/store_shared.h"

namespace rowtide {

void Totals::add(const Counters& batch) {
  const auto relaxed = std::memory_order_relaxed;
  batches_.fetch_add(batch.batches, relaxed);
  rows_.fetch_add(batch.rows, relaxed);
  bundles_.fetch_add(batch.bundles, relaxed);
  hits_.fetch_add(batch.hits, relaxed);
  unique_rows_.fetch_add(batch.unique_rows, relaxed);
  blocks_.fetch_add(batch.blocks, relaxed);
  reads_.fetch_add(batch.reads, relaxed);
  bytes_read_.fetch_add(batch.bytes_read, relaxed);
  wait_ns_.fetch_add(batch.wait_ns, relaxed);
  prefetched_rows_.fetch_add(batch.prefetched_rows, relaxed);
  prefetched_rows_used_.fetch_add(batch.prefetched_rows_used, relaxed);
  prefetch_reads_.fetch_add(batch.prefetch_reads, relaxed);
  prefetch_bytes_read_.fetch_add(batch.prefetch_bytes_read, relaxed);
}

Counters Totals::snapshot() const {
  Counters now;
  now.batches = batches_;
  now.rows = rows_;
  now.bundles = bundles_;
  now.hits = hits_;
  now.unique_rows = unique_rows_;
  now.blocks = blocks_;
  now.reads = reads_;
  now.bytes_read = bytes_read_;
  now.wait_ns = wait_ns_;
  now.prefetched_rows = prefetched_rows_;
  now.prefetched_rows_used = prefetched_rows_used_;
  now.prefetch_reads = prefetch_reads_;
  now.prefetch_bytes_read = prefetch_bytes_read_;
  return now;
}

}  // namespace rowtide
