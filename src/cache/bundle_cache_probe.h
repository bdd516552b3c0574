// The lookup of BundleCache, in a header because every batch form copies or decodes hits in its own way.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>

#include "cache/bundle_cache.h"
#include "cache/cached_table.h"

namespace rowtide {

template <class OnHit, class OnMiss>
std::uint64_t BundleCache::Lookup::probe(const CachedTable& table, std::span<const RowId> ids, std::size_t first,
                                         std::size_t end, Use use, OnHit&& on_hit, OnMiss&& on_miss) {
  // A group at a time, so that the cache lines of one bundle arrive while others are looked up.
  constexpr std::size_t kGroup = 16;
  constexpr std::size_t kSectionBundles = 1024;  // an eviction waits no longer than these take
  constexpr std::size_t kLinesAhead = 4;

  const EntryShape& shape = table.shape;
  std::array<std::uint64_t, kGroup> hashes;
  std::uint64_t first_uses = 0;
  for (std::size_t section = first; section < end; section += kSectionBundles) {
    const std::size_t section_end = std::min(end, section + kSectionBundles);
    ReadEpochs::Section looking(cache_.epochs_, mark_);
    for (std::size_t group = section; group < section_end; group += kGroup) {
      const std::size_t count = std::min(kGroup, section_end - group);
      for (std::size_t i = 0; i < count; ++i) {
        hashes[i] = shape.hash(&ids[(group + i) * shape.heads]);
        table.part_of(hashes[i]).index.prefetch(table.within_shard(hashes[i]));
      }
      for (std::size_t i = 0; i < count; ++i) {
        table.part_of(hashes[i]).index.find(table.within_shard(hashes[i]), [&](BundleIndex::Place place) {
          const std::byte* entry = cache_.entry_at(place);
          for (std::size_t line = 0; line < kLinesAhead; ++line) __builtin_prefetch(entry + 64 * line);
          return true;
        });
      }
      for (std::size_t i = 0; i < count; ++i) {
        const RowId* const key = &ids[(group + i) * shape.heads];
        const auto place = table.part_of(hashes[i]).index.find(
            table.within_shard(hashes[i]),
            [&](BundleIndex::Place candidate) { return shape.holds(cache_.entry_at(candidate), key); });
        if (place == 0) {
          on_miss(group + i, hashes[i]);
          continue;
        }
        std::byte* const entry = cache_.entry_at(place);
        if (use == Use::kTouch) first_uses += touch(*reinterpret_cast<EntryHead*>(entry));
        on_hit(group + i, static_cast<const std::byte*>(entry + shape.rows_at));
      }
    }
  }
  return first_uses;
}

/// Counts a use; true if it is the first one of a bundle that a prefetch brought.
inline bool BundleCache::Lookup::touch(EntryHead& head) {
  std::atomic_ref frequency(head.frequency);
  const std::uint8_t touches = frequency.load(std::memory_order_relaxed);
  if (touches < kFrequencyMax) {  // two at once may count as one
    frequency.store(static_cast<std::uint8_t>(touches + 1), std::memory_order_relaxed);
  }
  std::atomic_ref prefetched(head.prefetched);
  return prefetched.load(std::memory_order_relaxed) != 0 && prefetched.exchange(0, std::memory_order_relaxed) != 0;
}

}  // namespace rowtide
