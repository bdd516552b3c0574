// Caches that know the trace beforehand: what to compare with.
#pragma once

#include <cstddef>
#include <queue>
#include <vector>

#include "cli/bench/cache_policy.h"

namespace rowtide::cli {

/// The bundles asked for most in the first half of the trace, held from its middle on.
class StaticSet : public CachePolicy {
 public:
  explicit StaticSet(const CacheCase& of);
  std::uint64_t serve(std::span<const Touch> batch) override;
  std::size_t first_counted_batch() const override { return middle_; }

 private:
  std::uint32_t rows_per_bundle_;
  std::size_t middle_;
  std::vector<bool> held_;
};

/// Belady's: after each batch the bundles whose next lookup is nearest are kept, whether they were there or have just
/// been read. No cache of as many bundles serves more.
class OptimalCache : public CachePolicy {
 public:
  explicit OptimalCache(const CacheCase& of);
  std::uint64_t serve(std::span<const Touch> batch) override;

 private:
  using Place = std::uint32_t;  // of a touch in the trace

  std::uint32_t rows_per_bundle_;
  std::size_t capacity_, held_ = 0;
  std::size_t served_ = 0;          // touches so far
  std::vector<Place> next_;         // the touch of the same bundle that comes next, by place
  std::vector<bool> kept_;          // by place: its bundle will be there
  std::priority_queue<Place> far_;  // next touches of what is held, and of what was used since
};

}  // namespace rowtide::cli
