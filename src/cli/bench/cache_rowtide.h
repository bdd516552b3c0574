// The cache itself, src/cache: looked up and filled as a reader does it, only that no row is read or copied.
#pragma once

#include <vector>

#include "cache/bundle_cache.h"
#include "cli/bench/cache_policy.h"

namespace rowtide::cli {

/// Takes the memory that it is made for. All of that is charged: segments, index and ghosts; what readers and their
/// queues need besides is not. Under its least size it serves nothing.
class RowtideCache : public CachePolicy {
 public:
  explicit RowtideCache(const CacheCase& of);
  std::uint64_t serve(std::span<const Touch> batch) override;

 private:
  const BundleTrace& trace_;
  BundleCache cache_;
  std::shared_ptr<CachedTable> table_;
  BundleCache::Lookup lookup_;
  bool too_small_;
  std::vector<RowId> ids_;  // of a batch, as asked for
  std::vector<Missed> missed_;
};

}  // namespace rowtide::cli
