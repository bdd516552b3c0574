// From a bundle's hash to where in the cache it may lie. Lookups take no lock; the key itself is compared by
// the caller, so the index may be wrong but never harmful.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>

#include "address/uint128.h"
#include "cache/zeroed_array.h"

namespace rowtide {

/// Buckets of one cache line: ten places, each with a 16-bit tag of its hash. Made for a load of one half; a
/// full bucket (one in seventy then) forgets one of its places, which is a miss some day.
/// Threads: candidates() and prefetch() any number, beside one that changes it.
class BundleIndex {
 public:
  /// Where a bundle lies, in units the caller chooses; 0 is nowhere.
  using Place = std::uint32_t;

  explicit BundleIndex(std::uint64_t entries) : buckets_(buckets_for(entries)) {}

  void commit() const { buckets_.commit(); }
  void prefetch(std::uint64_t hash) const { __builtin_prefetch(&bucket_of(hash)); }

  /// Calls `is_it(place)` for the places that a bundle of this hash may have until one returns true; returns it, or 0.
  template <class IsIt>
  Place find(std::uint64_t hash, IsIt&& is_it) const {
    const Bucket& bucket = bucket_of(hash);
    for (std::size_t word = 0; word < bucket.tags.size(); ++word) {
      std::uint64_t lanes = matching_lanes(bucket.tags[word].load(std::memory_order_relaxed), tag_of(hash));
      for (; lanes != 0; lanes &= lanes - 1) {
        const std::size_t at = 4 * word + static_cast<std::size_t>(std::countr_zero(lanes)) / 16;
        if (at >= kWays) break;
        const Place place = bucket.places[at].load();  // seq_cst: see ReadEpochs
        if (place != 0 && is_it(place)) return place;
      }
    }
    return 0;
  }

  /// Returns the place that had to be forgotten, or 0.
  Place insert(std::uint64_t hash, Place place) {
    Bucket& bucket = bucket_of(hash);
    std::size_t at = 0;
    while (at < kWays && bucket.places[at].load(std::memory_order_relaxed) != 0) ++at;
    if (at == kWays) at = hash % kWays;
    const Place forgotten = bucket.places[at].exchange(0);
    set_tag(bucket, at, tag_of(hash));
    bucket.places[at].store(place);
    return forgotten;
  }

  /// Points the entry at `from` to `to` (0: removes it). False if there is none.
  bool replace(std::uint64_t hash, Place from, Place to) {
    Bucket& bucket = bucket_of(hash);
    for (std::atomic<Place>& place : bucket.places) {
      if (place.load(std::memory_order_relaxed) != from) continue;
      place.store(to);
      return true;
    }
    return false;
  }

  static std::uint64_t memory_bytes_for(std::uint64_t entries) { return buckets_for(entries) * sizeof(Bucket); }
  std::uint64_t memory_bytes() const { return buckets_.bytes(); }

 private:
  static constexpr std::size_t kWays = 10;

  struct alignas(64) Bucket {
    std::array<std::atomic<std::uint64_t>, 3> tags{};  // four to a word; the last two are not used
    std::array<std::atomic<Place>, kWays> places{};
  };
  static_assert(sizeof(Bucket) == 64);

  static std::uint64_t buckets_for(std::uint64_t entries) { return entries / (kWays / 2) + 1; }
  static std::uint64_t tag_of(std::uint64_t hash) { return hash & 0xffff; }

  /// The top bit of each 16-bit lane that equals `tag`; lanes above a true match may be false ones.
  static std::uint64_t matching_lanes(std::uint64_t lanes, std::uint64_t tag) {
    constexpr std::uint64_t kOnes = 0x0001'0001'0001'0001;
    const std::uint64_t differing = lanes ^ (tag * kOnes);
    return (differing - kOnes) & ~differing & (kOnes << 15);
  }

  static void set_tag(Bucket& bucket, std::size_t at, std::uint64_t tag) {
    const std::size_t shift = at % 4 * 16;
    std::atomic<std::uint64_t>& word = bucket.tags[at / 4];
    const std::uint64_t others = word.load(std::memory_order_relaxed) & ~(std::uint64_t{0xffff} << shift);
    word.store(others | tag << shift, std::memory_order_relaxed);
  }

  const Bucket& bucket_of(std::uint64_t hash) const {
    return buckets_[static_cast<std::uint64_t>((Uint128{hash} * buckets_.size()) >> 64)];
  }
  Bucket& bucket_of(std::uint64_t hash) {
    return buckets_[static_cast<std::uint64_t>((Uint128{hash} * buckets_.size()) >> 64)];
  }

  ZeroedArray<Bucket> buckets_;
};

}  // namespace rowtide
