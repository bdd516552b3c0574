#include "cli/bench/cache_rowtide.h"

#include <algorithm>

namespace rowtide::cli {
namespace {

std::uint32_t segments_within(std::uint64_t bytes) {
  return static_cast<std::uint32_t>(
      std::min<std::uint64_t>(bytes / SegmentArena::kSegmentBytes, BundleCache::kSegmentsMax));
}

}  // namespace

RowtideCache::RowtideCache(const CacheCase& of)
    : trace_(of.trace),
      cache_(std::max(segments_within(of.memory_bytes), BundleCache::kSegmentsMin)),
      table_(cache_.add_table(of.trace.rows_per_bundle(), of.table.row_bytes, of.table.rows)),
      lookup_(cache_) {
  std::uint64_t index = cache_.index_bytes(of.trace.rows_per_bundle(), of.table.row_bytes, of.table.rows);
  std::uint32_t segments = of.memory_bytes > index ? segments_within(of.memory_bytes - index) : 0;
  too_small_ = segments < cache_.segments_min();
  cache_.set_segments(segments);
}

std::uint64_t RowtideCache::serve(std::span<const Touch> batch) {
  if (too_small_) return 0;
  ids_.clear();
  for (const Touch& touch : batch) {
    auto rows = trace_.rows(touch.bundle);
    for (std::uint32_t i = 0; i < touch.count; ++i) ids_.insert(ids_.end(), rows.begin(), rows.end());
  }
  // A bundle's lookups stand side by side: those after its first are touches of what is there, or of what is missing.
  std::uint32_t heads = trace_.rows_per_bundle();
  auto repeats = [&](std::size_t bundle) {
    return bundle > 0 && std::ranges::equal(std::span(ids_).subspan(bundle * heads, heads),
                                            std::span(ids_).subspan((bundle - 1) * heads, heads));
  };
  std::uint64_t found = 0;
  missed_.clear();
  lookup_.probe(
      *table_, ids_, 0, ids_.size() / heads, BundleCache::Use::kTouch,
      [&](std::size_t bundle, const std::byte*) { found += repeats(bundle) ? 0 : heads; },
      [&](std::size_t bundle, std::uint64_t hash) {
        if (repeats(bundle)) {
          ++missed_.back().touches;
        } else {
          missed_.push_back({.hash = hash, .bundle = static_cast<std::uint32_t>(bundle)});
        }
      });
  cache_.reserve(*table_, ids_, missed_, /*prefetched=*/false);
  cache_.publish(*table_, missed_);
  return found;
}

}  // namespace rowtide::cli
