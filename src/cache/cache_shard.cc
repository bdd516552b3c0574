#include "cache/cache_shard.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

namespace rowtide {
namespace {

constexpr std::uint32_t kSmallShare = 10;   // the small log gets one segment in so many
constexpr std::uint8_t kTouchesToStay = 1;  // in the small log, to go on to the main one
constexpr int kEvictionsMax = 4;            // for one free segment; then survivors are let go too

std::uint8_t frequency_of(std::byte* entry) {
  return std::atomic_ref(reinterpret_cast<EntryHead*>(entry)->frequency).load(std::memory_order_relaxed);
}
/// Whether a prefetch brought it and nobody has asked for it so far; each such entry says so to one caller.
bool take_unused_prefetch(std::byte* entry) {
  return std::atomic_ref(reinterpret_cast<EntryHead*>(entry)->prefetched).exchange(0, std::memory_order_relaxed) != 0;
}

}  // namespace

void CacheShard::add_table(CachedTable& table) {
  table.number = static_cast<std::uint16_t>(tables_.size());
  tables_.push_back({table.shape.bytes, &table});
  ids_.resize(std::max<std::size_t>(ids_.size(), table.shape.heads));
}

void CacheShard::forget_table(const CachedTable& table) { tables_[table.number].table = nullptr; }

std::byte* CacheShard::reserve(CachedTable& table, std::uint64_t hash, const RowId* ids, std::uint32_t touches,
                               bool prefetched) {
  const bool seen_before = table.part_of(hash).ghosts.take(table.within_shard(hash));
  std::byte* entry = append(seen_before ? main_ : small_, table.shape.bytes, true);
  if (entry == nullptr) {
    table.part_of(hash).ghosts.insert(table.within_shard(hash));  // as if it had passed through the small log
    return nullptr;
  }
  const auto frequency = static_cast<std::uint8_t>(std::min<std::uint32_t>(touches, kFrequencyMax));
  *reinterpret_cast<EntryHead*>(entry) = {frequency, prefetched, table.number, 0};
  table.shape.write_ids(entry, ids);
  ++segment_of(entry).reserved;
  return entry;
}

void CacheShard::publish(CachedTable& table, std::uint64_t hash, std::uint32_t place) {
  std::byte* const entry = cache_.entry_at(place);
  --segment_of(entry).reserved;
  BundleIndex& index = table.part_of(hash).index;
  const std::uint64_t within = table.within_shard(hash);
  const bool there = index.find(within, [&](BundleIndex::Place other) {
    return table.shape.same_key(cache_.entry_at(other), entry);
  }) != 0;
  const std::uint32_t lost = there ? place : index.insert(within, place);
  if (lost != 0) count_lost(cache_.entry_at(lost), table);
}

void CacheShard::cancel(std::uint32_t place) { --segment_of(cache_.entry_at(place)).reserved; }

void CacheShard::set_segments(std::uint32_t segments) {
  segments_ = segments;
  while (held_ > segments_) {
    const auto id = retired_segment();
    if (!id) return;  // what is being written comes free later: see free_segment()
    cache_.arena_.give_back(*id);
    --held_;
  }
}

/// Room at the end of a log, in a new segment if the open one is full.
std::byte* CacheShard::append(Log& log, std::uint64_t bytes, bool may_evict) {
  auto is_full = [&] { return !log.open || all_[*log.open].used_bytes + bytes > SegmentArena::kSegmentBytes; };
  if (is_full()) {
    auto next = may_evict ? obtain() : std::exchange(spare_, std::nullopt);
    if (!is_full()) {  // survivors of an eviction have opened a segment of this log, which has room
      if (next) retired_.push_front(*next);
    } else if (next) {
      if (log.open) log.sealed.push_back(*log.open);
      log.open = next;
      all_[*next] = {};
    } else {
      return nullptr;
    }
  }
  std::byte* entry = cache_.arena_.segment(*log.open) + all_[*log.open].used_bytes;
  all_[*log.open].used_bytes += static_cast<std::uint32_t>(bytes);
  return entry;
}

/// A free segment for a log, after one is kept for the survivors of evictions.
std::optional<CacheShard::SegmentId> CacheShard::obtain() {
  if (!spare_) spare_ = free_segment();
  if (!spare_) return std::nullopt;
  return free_segment();
}

std::optional<CacheShard::SegmentId> CacheShard::free_segment() {
  if (held_ > segments_) set_segments(segments_);
  if (held_ < segments_) {
    if (const auto fresh = cache_.arena_.take()) {
      ++held_;
      if (all_.size() <= *fresh) all_.resize(*fresh + 1);
      return fresh;
    }
  }
  return retired_segment();
}

/// An evicted segment that nobody looks at any more.
std::optional<CacheShard::SegmentId> CacheShard::retired_segment() {
  for (int evictions = 0; retired_.empty(); ++evictions) {
    if (!evict_one(evictions < kEvictionsMax)) return std::nullopt;
  }
  const SegmentId id = retired_.front();
  retired_.pop_front();
  cache_.epochs_.wait(all_[id].retired);
  return id;
}

std::uint32_t CacheShard::small_segments() const {
  return std::max(1u, segments_.load(std::memory_order_relaxed) / kSmallShare);
}

/// Evicts one segment, with or without survivors; false if none can be.
bool CacheShard::evict_one(bool with_survivors) {
  const bool small_is_full = small_.sealed.size() >= small_segments();
  Log& first = small_is_full ? small_ : main_;
  Log& second = small_is_full ? main_ : small_;
  Log* log = &first;
  auto id = take_oldest(first);
  if (!id) {
    log = &second;
    id = take_oldest(second);
  }
  if (!id) return false;
  evict(*id, log == &small_, with_survivors);
  if (!spare_) {  // the survivors took it
    spare_ = retired_.front();
    retired_.pop_front();
    cache_.epochs_.wait(all_[*spare_].retired);
  }
  return true;
}

std::optional<CacheShard::SegmentId> CacheShard::take_oldest(Log& log) {
  const auto oldest =
      std::find_if(log.sealed.begin(), log.sealed.end(), [this](SegmentId id) { return all_[id].reserved == 0; });
  if (oldest == log.sealed.end()) return std::nullopt;
  const SegmentId id = *oldest;
  log.sealed.erase(oldest);
  return id;
}

void CacheShard::evict(SegmentId id, bool from_small, bool with_survivors) {
  std::byte* const begin = cache_.arena_.segment(id);
  for (std::uint64_t at = 0; at < all_[id].used_bytes;) {
    const KnownTable& known = tables_[reinterpret_cast<EntryHead*>(begin + at)->table];
    if (known.table != nullptr) evict_entry(begin + at, *known.table, from_small, with_survivors);
    at += known.entry_bytes;
  }
  all_[id].retired = cache_.epochs_.retire();
  retired_.push_back(id);
}

void CacheShard::evict_entry(std::byte* entry, CachedTable& table, bool from_small, bool may_survive) {
  const std::uint64_t hash = table.shape.hash_of_entry(entry, ids_);
  const std::uint8_t frequency = frequency_of(entry);
  const bool stays = may_survive && frequency >= (from_small ? kTouchesToStay : 1);
  if (stays && relocate(entry, table, hash, from_small ? 0 : frequency - 1)) return;
  const std::uint64_t within = table.within_shard(hash);
  if (!table.part_of(hash).index.replace(within, cache_.place_of(entry), 0))
    return;  // was never published, or replaced
  if (from_small) table.part_of(hash).ghosts.insert(within);
  count_lost(entry, table);
}

/// Nobody will find it any more.
void CacheShard::count_lost(std::byte* entry, CachedTable& table) {
  if (take_unused_prefetch(entry)) table.prefetched_in_vain.fetch_add(1, std::memory_order_relaxed);
}

/// Copies an entry to the main log. False if there is no room for it.
bool CacheShard::relocate(std::byte* entry, CachedTable& table, std::uint64_t hash, std::uint8_t frequency) {
  std::byte* to = append(main_, table.shape.bytes, false);
  if (to == nullptr) return false;
  *reinterpret_cast<EntryHead*>(to) = {frequency, take_unused_prefetch(entry), table.number, 0};
  std::memcpy(to + sizeof(EntryHead), entry + sizeof(EntryHead), table.shape.bytes - sizeof(EntryHead));
  BundleIndex& index = table.part_of(hash).index;
  if (!index.replace(table.within_shard(hash), cache_.place_of(entry), cache_.place_of(to))) {
    all_[*main_.open].used_bytes -= static_cast<std::uint32_t>(table.shape.bytes);  // nobody can find it; take it back
  }
  return true;
}

CacheShard::Segment& CacheShard::segment_of(const std::byte* entry) {
  return all_[static_cast<std::uint64_t>(entry - cache_.arena_.base()) / SegmentArena::kSegmentBytes];
}

}  // namespace rowtide
