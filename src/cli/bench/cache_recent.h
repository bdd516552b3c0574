// Caches of what was asked for last: bundles, or the pages that hold their rows.
#pragma once

#include <vector>

#include "cli/bench/cache_policy.h"

namespace rowtide::cli {

/// The numbers that were touched last, at most `capacity` of them, out of 0..known-1. 8 bytes for each known one.
class RecentNumbers {
 public:
  RecentNumbers(std::size_t known, std::size_t capacity);

  bool holds(std::uint32_t number) const { return links_[number].next != kAbsent; }
  /// Becomes the latest; where there are too many, the one touched longest ago is dropped.
  void touch(std::uint32_t number);

 private:
  static constexpr std::uint32_t kAbsent = 0xFFFFFFFF;
  struct Links {
    std::uint32_t next = kAbsent, previous = kAbsent;
  };

  void unlink(std::uint32_t number);

  std::size_t capacity_, held_ = 0;
  std::vector<Links> links_;  // a ring through an anchor, the last element
};

class LruCache : public CachePolicy {
 public:
  explicit LruCache(const CacheCase& of);
  std::uint64_t serve(std::span<const Touch> batch) override;

 private:
  std::uint32_t rows_per_bundle_;
  RecentNumbers bundles_;
};

/// Pages as the kernel would hold them had it the memory to itself; read-ahead and its own bookkeeping cost nothing.
/// Rows are touched one after the other, as they would be through a mapping.
class PageCache : public CachePolicy {
 public:
  explicit PageCache(const CacheCase& of);
  std::uint64_t serve(std::span<const Touch> batch) override;

 private:
  struct Stretch {  // the pages of one extent
    std::uint64_t first_row, first_byte, first_page;
  };
  struct Part {  // what one component holds of the rows
    std::uint64_t row_bytes;
    std::vector<Stretch> stretches;
  };
  struct Pages {  // of one row's part
    std::uint32_t first, last;
  };
  static Pages pages_of_row(const Part& part, RowId row);
  bool touch(RowId row);

  const BundleTrace& trace_;
  std::vector<Part> parts_;
  RecentNumbers pages_;
};

}  // namespace rowtide::cli
