// The bundle cache: the rows of n-grams that were asked for, side by side, within a number of segments.
// S3-FIFO (Yang et al., "FIFO queues are all you need for cache eviction", SOSP 2023) over two logs: bundles
// enter a small log, those asked for again go on to the main log, what left the small one unasked is
// remembered as a ghost. A log is a sequence of 2 MiB segments, written front to back and evicted whole, the
// survivors copied on; so bundles of any size share the memory, and whole segments can be given back.
//
// Looking up takes no lock: readers announce themselves (ReadEpochs), compare the whole key, use the rows in
// place. Admission takes one lock a batch and shard.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "cache/read_epochs.h"
#include "cache/segment_arena.h"
#include "rowtide/addressing.h"

namespace rowtide {

class CacheShard;
struct EntryHead;

/// One table's bundles in the cache: their shape, their index and their ghosts.
class CachedTable;

/// A bundle that was not in the cache, and what became of its admission.
struct Missed {
  std::uint64_t hash = 0;
  std::uint32_t bundle = 0;   // which of the batch: its ids begin at bundle * heads
  std::uint32_t touches = 0;  // how often the batch asks for it, beyond the first time
  std::byte* rows = nullptr;  // where its rows must be written before publish(); null: not admitted
  std::uint32_t place = 0;    // the cache's own
};

class BundleCache {
 public:
  static constexpr std::uint32_t kSegmentsMin = 8;
  static constexpr std::uint32_t kSegmentsMax = 65535;  // 128 GiB: what the index can point at

  /// Address space for `segments`, of which all may be used until set_segments() says less. Throws
  /// std::bad_alloc when the kernel refuses.
  explicit BundleCache(std::uint32_t segments);
  ~BundleCache();

  /// Bundles of `heads` rows of `row_bytes` bytes; row ids below `table_rows`. Throws std::bad_alloc. The
  /// table's index and ghosts take index_bytes(); its bundles stay until they are evicted.
  std::shared_ptr<CachedTable> add_table(std::uint32_t heads, std::uint64_t row_bytes, std::uint64_t table_rows);
  /// What add_table() will take beside the segments.
  std::uint64_t index_bytes(std::uint32_t heads, std::uint64_t row_bytes, std::uint64_t table_rows) const;

  /// Evicts down to so many segments (at least segments_min()) and gives their memory back, or allows more.
  /// May wait for readers in their sections.
  void set_segments(std::uint32_t segments);
  /// Has the kernel provide all of the segments' memory now.
  void commit() { arena_.commit(); }
  std::uint32_t segments_min() const { return kSegmentsMin * static_cast<std::uint32_t>(shards_.size()); }
  /// How many bundles of `table` a prefetch may be ahead: more, and it would evict its own before they are used.
  std::uint64_t bundles_ahead_max(const CachedTable& table) const;
  std::uint64_t memory_bytes() const;  // segments held, whether full or not

  enum class Use { kTouch, kLook };  // kLook does not count: a prefetch that finds its bundle there

  /// One reader's way into the cache; used by one thread at a time.
  class Lookup {
   public:
    explicit Lookup(BundleCache& cache) : cache_(cache), mark_(cache.epochs_.add_reader()) {}
    ~Lookup() { cache_.epochs_.remove_reader(mark_); }
    Lookup(const Lookup&) = delete;
    Lookup& operator=(const Lookup&) = delete;

    /// For bundles [first, end) of `ids` in order: on_hit(bundle, rows) with rows valid during that call only, or
    /// on_miss(bundle, hash). Neither may call the cache. Returns how many of the hits were the first use
    /// of a bundle that a prefetch had brought.
    template <class OnHit, class OnMiss>
    std::uint64_t probe(const CachedTable& table, std::span<const RowId> ids, std::size_t first, std::size_t end,
                        Use use, OnHit&& on_hit, OnMiss&& on_miss);

   private:
    static bool touch(EntryHead& head);

    BundleCache& cache_;
    ReadEpochs::Mark& mark_;
  };

  /// Makes room for `missed`, bundles of `ids`, and sets their `rows` and `place`; those for which there is
  /// none just now keep null. `prefetched` marks them as brought before anyone asked.
  void reserve(CachedTable& table, std::span<const RowId> ids, std::span<Missed> missed, bool prefetched);
  /// Their rows are written: from now on they hit. One that somebody else has published
  /// meanwhile is dropped.
  void publish(CachedTable& table, std::span<const Missed> missed);
  /// Their rows will not come.
  void cancel(const CachedTable& table, std::span<const Missed> missed);

 private:
  friend class CacheShard;

  static constexpr std::uint64_t kPlaceBytes = 32;  // entries begin at multiples of it

  template <class Work>
  void for_each_by_shard(const CachedTable& table, std::size_t count, Work&& work);
  std::byte* entry_at(std::uint32_t place) const { return arena_.base() + (place - 1) * kPlaceBytes; }
  std::uint32_t place_of(const std::byte* entry) const {
    return static_cast<std::uint32_t>(static_cast<std::uint64_t>(entry - arena_.base()) / kPlaceBytes + 1);
  }

  SegmentArena arena_;
  ReadEpochs epochs_;
  std::mutex tables_mutex_;
  std::vector<std::unique_ptr<CacheShard>> shards_;
};

}  // namespace rowtide

#include "cache/bundle_cache_probe.h"  // IWYU pragma: keep
