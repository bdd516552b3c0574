#include "cache/bundle_cache.h"

#include <algorithm>
#include <bit>
#include <new>

#include "cache/cache_shard.h"
#include "cache/cached_table.h"

namespace rowtide {
namespace {

constexpr std::uint32_t kShardsMax = 8;
constexpr std::uint32_t kShardSegments = 64;  // a shard with fewer would cut its logs too coarsely

std::uint32_t shards_for(std::uint32_t segments) {
  return std::bit_floor(std::clamp(segments / kShardSegments, 1u, kShardsMax));
}

/// How many bundles of a table the index is made for: as many as the segments hold, but no more than make up the table
/// twice over. Bundles beyond are forgotten; who keeps so many is better off with the table resident.
std::uint64_t entries_a_shard(std::uint32_t segments, const EntryShape& shape, std::uint64_t table_rows) {
  const std::uint64_t held = segments * SegmentArena::kSegmentBytes / shape.bytes;
  return std::min(held, 2 * table_rows / shape.heads) / shards_for(segments) + 1;
}

}  // namespace

BundleCache::BundleCache(std::uint32_t segments) : arena_(segments) {
  static_assert(EntryShape::kPlaceBytes == kPlaceBytes);
  if (arena_.segments() == 0) throw std::bad_alloc();
  const std::uint32_t shards = shards_for(segments);
  for (std::uint32_t i = 0; i < shards; ++i) shards_.push_back(std::make_unique<CacheShard>(*this, segments / shards));
}

BundleCache::~BundleCache() = default;

std::shared_ptr<CachedTable> BundleCache::add_table(std::uint32_t heads, std::uint64_t row_bytes,
                                                    std::uint64_t table_rows) {
  const EntryShape shape(heads, row_bytes, table_rows);
  const auto shards = static_cast<std::uint32_t>(shards_.size());
  auto added = std::make_unique<CachedTable>(shape, shards, entries_a_shard(arena_.segments(), shape, table_rows));
  std::lock_guard one_at_a_time(tables_mutex_);
  for (auto& shard : shards_) {
    std::lock_guard lock(shard->mutex);
    shard->add_table(*added);
  }
  return {added.release(), [this](CachedTable* table) {
            {
              std::lock_guard one_at_a_time_again(tables_mutex_);
              for (auto& shard : shards_) {
                std::lock_guard lock(shard->mutex);
                shard->forget_table(*table);
              }
            }
            delete table;
          }};
}

std::uint64_t BundleCache::index_bytes(std::uint32_t heads, std::uint64_t row_bytes, std::uint64_t table_rows) const {
  const std::uint64_t entries =
      entries_a_shard(arena_.segments(), EntryShape(heads, row_bytes, table_rows), table_rows);
  return shards_.size() * (BundleIndex::memory_bytes_for(entries) + GhostList::memory_bytes_for(entries));
}

void BundleCache::set_segments(std::uint32_t segments) {
  const auto shards = static_cast<std::uint32_t>(shards_.size());
  const std::uint32_t each = std::min(arena_.segments(), std::max(segments, segments_min())) / shards;
  for (auto& shard : shards_) {
    std::lock_guard lock(shard->mutex);
    shard->set_segments(each);
  }
}

std::uint64_t BundleCache::bundles_ahead_max(const CachedTable& table) const {
  std::uint64_t small_segments = 0;
  for (const auto& shard : shards_) small_segments += shard->small_segments();
  return small_segments * SegmentArena::kSegmentBytes / table.shape.bytes / 2;
}

std::uint64_t BundleCache::memory_bytes() const {
  std::uint64_t segments = 0;
  for (const auto& shard : shards_) segments += shard->segments_held();
  return segments * SegmentArena::kSegmentBytes;
}

template <class Work>
void BundleCache::for_each_by_shard(const CachedTable& table, std::size_t count, Work&& work) {
  // `work(shard, is_mine)` once a shard under its lock; few shards, so looking through all bundles for each is cheap.
  for (std::uint32_t i = 0; i < shards_.size(); ++i) {
    if (count == 0) return;
    std::lock_guard lock(shards_[i]->mutex);
    work(*shards_[i], [&table, i](const Missed& bundle) { return table.shard_of(bundle.hash) == i; });
  }
}

void BundleCache::reserve(CachedTable& table, std::span<const RowId> ids, std::span<Missed> missed, bool prefetched) {
  for (const Missed& bundle : missed) table.part_of(bundle.hash).ghosts.prefetch(table.within_shard(bundle.hash));
  for_each_by_shard(table, missed.size(), [&](CacheShard& shard, auto is_mine) {
    for (Missed& bundle : missed) {
      if (!is_mine(bundle)) continue;
      std::byte* const entry =
          shard.reserve(table, bundle.hash, &ids[bundle.bundle * table.shape.heads], bundle.touches, prefetched);
      if (entry == nullptr) continue;
      bundle.rows = entry + table.shape.rows_at;
      bundle.place = place_of(entry);
    }
  });
}

void BundleCache::publish(CachedTable& table, std::span<const Missed> missed) {
  for (const Missed& bundle : missed) table.part_of(bundle.hash).index.prefetch(table.within_shard(bundle.hash));
  for_each_by_shard(table, missed.size(), [&](CacheShard& shard, auto is_mine) {
    for (const Missed& bundle : missed) {
      if (is_mine(bundle) && bundle.rows != nullptr) shard.publish(table, bundle.hash, bundle.place);
    }
  });
}

void BundleCache::cancel(const CachedTable& table, std::span<const Missed> missed) {
  for_each_by_shard(table, missed.size(), [&](CacheShard& shard, auto is_mine) {
    for (const Missed& bundle : missed) {
      if (is_mine(bundle) && bundle.rows != nullptr) shard.cancel(bundle.place);
    }
  });
}

}  // namespace rowtide
