// One shard of the cache: two logs of segments, and what is evicted from them when. All methods but those of
// BundleCache::Lookup, which do not come here, run under its lock.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <vector>

#include "cache/bundle_cache.h"
#include "cache/cached_table.h"

namespace rowtide {

class CacheShard {
 public:
  CacheShard(BundleCache& cache, std::uint32_t segments) : cache_(cache), segments_(segments) {}

  std::mutex mutex;

  /// The same number in every shard, since tables come and go under all their locks.
  void add_table(CachedTable& table);
  void forget_table(const CachedTable& table);

  /// The entry with head and ids written, or null if no segment can be had just now.
  std::byte* reserve(CachedTable& table, std::uint64_t hash, const RowId* ids, std::uint32_t touches, bool prefetched);
  void publish(CachedTable& table, std::uint64_t hash, std::uint32_t place);
  void cancel(std::uint32_t place);

  void set_segments(std::uint32_t segments);
  std::uint32_t segments_held() const { return held_; }  // any thread
  std::uint32_t small_segments() const;                  // how many the small log is to have; any thread

 private:
  using SegmentId = std::uint32_t;

  struct Segment {
    std::uint32_t used_bytes = 0;
    std::uint32_t reserved = 0;  // entries whose rows are being written: it cannot be evicted
    std::uint64_t retired = 0;   // epoch
  };
  struct Log {
    std::deque<SegmentId> sealed;  // oldest first
    std::optional<SegmentId> open;
    std::uint32_t segments() const { return static_cast<std::uint32_t>(sealed.size()) + (open ? 1 : 0); }
  };
  struct KnownTable {
    std::uint64_t entry_bytes;
    CachedTable* table;  // null: closed; what is left of it is evicted in its turn
  };

  std::byte* append(Log& log, std::uint64_t bytes, bool may_evict);
  std::optional<SegmentId> obtain();
  std::optional<SegmentId> free_segment();
  std::optional<SegmentId> retired_segment();
  bool evict_one(bool with_survivors);
  std::optional<SegmentId> take_oldest(Log& log);
  void evict(SegmentId id, bool from_small, bool with_survivors);
  void evict_entry(std::byte* entry, CachedTable& table, bool from_small, bool may_survive);
  static void count_lost(std::byte* entry, CachedTable& table);
  bool relocate(std::byte* entry, CachedTable& table, std::uint64_t hash, std::uint8_t frequency);
  Segment& segment_of(const std::byte* entry);

  BundleCache& cache_;
  std::atomic<std::uint32_t> segments_;  // it may hold so many
  std::atomic<std::uint32_t> held_ = 0;
  std::vector<Segment> all_;  // by SegmentId
  Log small_, main_;
  std::deque<SegmentId> retired_;   // evicted; readers may still be looking at them
  std::optional<SegmentId> spare_;  // where survivors of an eviction go when the main log's open segment is full
  std::vector<KnownTable> tables_;
  std::vector<RowId> ids_;  // scratch
};

}  // namespace rowtide
