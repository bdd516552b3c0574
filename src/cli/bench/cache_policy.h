// Caches to be compared on one trace. All but the cache itself only count: which bundle they would hold is decided, no
// row is kept. Each is charged the bytes that it would need.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/bench/cache_trace.h"
#include "rowtide/table.h"

namespace rowtide::cli {

/// A batch is looked up as a whole before what was missing is admitted, as the store does it.
class CachePolicy {
 public:
  virtual ~CachePolicy() = default;

  /// The next batch of the trace. Gives how many rows of its bundles, each bundle counted once, were in memory when the
  /// batch came.
  virtual std::uint64_t serve(std::span<const Touch> batch) = 0;

  /// Where counting begins: what a policy was made from must not count.
  virtual std::size_t first_counted_batch() const { return 0; }
};

/// What a policy is made for. Both outlive it.
struct CacheCase {
  const BundleTrace& trace;
  const Table& table;  // row_bytes; extents, for the page cache
  std::uint64_t memory_bytes;

  /// A cached bundle: its rows, a header of 8 bytes, and 4 for each row id.
  std::uint64_t record_bytes() const { return 8 + trace.rows_per_bundle() * (table.row_bytes + 4); }
  /// How many bundles the memory holds at `extra` bytes each beside the record and its place in the index.
  std::uint64_t bundles(double extra) const {
    constexpr double kIndexBytes = 13;
    return static_cast<std::uint64_t>(static_cast<double>(memory_bytes) /
                                      (static_cast<double>(record_bytes()) + kIndexBytes + extra));
  }
};

/// The names, in the order they are reported.
std::vector<std::string> cache_policies();

/// The policy of that name:
///   rowtide     the cache itself, filled without rows
///   s3fifo[:small=SHARE][:ghost=RATIO][:promote=N][:touches=N][:segment=SIZE]
///               its algorithm as a model, bundle by bundle unless in segments
///   lru         the bundles asked for last
///   static      the bundles asked for most in the first half of the trace; counted on the second
///   page_cache  the 4 KiB pages of the table's files asked for last
///   optimum     what nobody can beat: keeps the bundles whose next lookup is nearest
/// Throws a usage Failure for another name.
std::unique_ptr<CachePolicy> make_cache_policy(const std::string& name, const CacheCase& of);

/// The same Failure, before there is a trace.
void check_cache_policy(const std::string& name);

/// The share of the rows asked for, each lookup counted, that were served from memory. A bundle that a batch asks for
/// several times is read at most once: all but the first lookup count as served.
double hit_share(const BundleTrace& trace, CachePolicy& policy);

}  // namespace rowtide::cli
