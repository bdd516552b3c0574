#include "store/store_shared.h"

namespace rowtide {

void Totals::add(const Counters& batch) {
  const auto release = std::memory_order_release;
  batches_.fetch_add(batch.batches, release);
  rows_.fetch_add(batch.rows, release);
  bundles_.fetch_add(batch.bundles, release);
  hits_.fetch_add(batch.hits, release);
  unique_rows_.fetch_add(batch.unique_rows, release);
  blocks_.fetch_add(batch.blocks, release);
  reads_.fetch_add(batch.reads, release);
  bytes_read_.fetch_add(batch.bytes_read, release);
  wait_ns_.fetch_add(batch.wait_ns, release);
  prefetched_rows_.fetch_add(batch.prefetched_rows, release);
  prefetched_rows_used_.fetch_add(batch.prefetched_rows_used, release);
  prefetch_reads_.fetch_add(batch.prefetch_reads, release);
  prefetch_bytes_read_.fetch_add(batch.prefetch_bytes_read, release);
}

// In the order opposite to add(): a snapshot between two of its additions has too many rows for its reads, never too
// few.
Counters Totals::snapshot() const {
  const auto acquire = std::memory_order_acquire;
  Counters now;
  now.prefetch_bytes_read = prefetch_bytes_read_.load(acquire);
  now.prefetch_reads = prefetch_reads_.load(acquire);
  now.prefetched_rows_used = prefetched_rows_used_.load(acquire);
  now.prefetched_rows = prefetched_rows_.load(acquire);
  now.wait_ns = wait_ns_.load(acquire);
  now.bytes_read = bytes_read_.load(acquire);
  now.reads = reads_.load(acquire);
  now.blocks = blocks_.load(acquire);
  now.unique_rows = unique_rows_.load(acquire);
  now.hits = hits_.load(acquire);
  now.bundles = bundles_.load(acquire);
  now.rows = rows_.load(acquire);
  now.batches = batches_.load(acquire);
  return now;
}

}  // namespace rowtide
