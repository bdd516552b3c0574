// One table's side of the cache: how its bundles lie in a segment, and where they are.
//
// An entry: EntryHead, the row ids of all heads (4 bytes each where the table has no more than 2^32 rows,
// else 8), the rows of all heads; padded to 32 bytes.
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "cache/bundle_index.h"
#include "cache/ghost_list.h"
#include "rowtide/addressing.h"

namespace rowtide {

struct EntryHead {
  std::uint8_t frequency = 0;  // touches since it entered its log, up to kFrequencyMax
  std::uint8_t prefetched = 0;
  std::uint16_t table = 0;
  std::uint32_t unused = 0;
};
inline constexpr std::uint8_t kFrequencyMax = 3;

struct EntryShape {
  EntryShape(std::uint32_t head_count, std::uint64_t bytes_of_row, std::uint64_t table_rows)
      : heads(head_count),
        id_bytes(table_rows <= std::uint64_t{1} << 32 ? 4 : 8),
        row_bytes(bytes_of_row),
        rows_at(sizeof(EntryHead) + heads * id_bytes),
        bytes((rows_at + heads * row_bytes + kPlaceBytes - 1) / kPlaceBytes * kPlaceBytes) {}

  static constexpr std::uint64_t kPlaceBytes = 32;

  std::uint64_t hash(const RowId* ids) const { return XXH3_64bits(ids, heads * sizeof(RowId)); }

  bool holds(const std::byte* entry, const RowId* ids) const {
    return id_bytes == 4 ? equal<std::uint32_t>(entry, ids) : equal<std::uint64_t>(entry, ids);
  }

  bool same_key(const std::byte* entry, const std::byte* other) const {
    return std::memcmp(entry + sizeof(EntryHead), other + sizeof(EntryHead), heads * id_bytes) == 0;
  }

  void write_ids(std::byte* entry, const RowId* ids) const {
    for (std::uint64_t head = 0; head < heads; ++head) {
      std::memcpy(entry + sizeof(EntryHead) + head * id_bytes, &ids[head], id_bytes);  // little-endian
    }
  }

  std::uint64_t hash_of_entry(const std::byte* entry, std::span<RowId> scratch) const {
    for (std::uint64_t head = 0; head < heads; ++head) {
      scratch[head] = 0;
      std::memcpy(&scratch[head], entry + sizeof(EntryHead) + head * id_bytes, id_bytes);
    }
    return hash(scratch.data());
  }

  std::uint64_t heads;
  std::uint64_t id_bytes;
  std::uint64_t row_bytes;
  std::uint64_t rows_at;  // where in the entry its rows begin
  std::uint64_t bytes;

 private:
  template <class Id>
  bool equal(const std::byte* entry, const RowId* ids) const {
    std::uint64_t differing = 0;
    for (std::uint64_t head = 0; head < heads; ++head) {
      Id id;
      std::memcpy(&id, entry + sizeof(EntryHead) + head * sizeof(Id), sizeof(Id));
      differing |= id ^ ids[head];
    }
    return differing == 0;
  }
};
static_assert(std::endian::native == std::endian::little);

class CachedTable {
 public:
  /// What one shard knows of the table.
  struct Part {
    explicit Part(std::uint64_t entries) : index(entries), ghosts(entries) {}
    BundleIndex index;
    GhostList ghosts;
  };

  CachedTable(EntryShape entry_shape, std::uint32_t shards, std::uint64_t entries_a_shard)
      : shape(entry_shape), shard_bits_(static_cast<std::uint32_t>(std::bit_width(shards) - 1)) {
    for (std::uint32_t i = 0; i < shards; ++i) parts_.push_back(std::make_unique<Part>(entries_a_shard));
  }

  std::uint32_t shard_of(std::uint64_t hash) const {
    return shard_bits_ == 0 ? 0 : static_cast<std::uint32_t>(hash >> (64 - shard_bits_));
  }
  /// The hash within a shard: its high bits tell bundles apart there.
  std::uint64_t within_shard(std::uint64_t hash) const { return std::rotl(hash, static_cast<int>(shard_bits_)); }
  /// Has the kernel provide the memory of index and ghosts, which are touched all over from the first batches on.
  /// Takes milliseconds; beside any other use.
  void commit() const {
    for (const auto& part : parts_) {
      part->index.commit();
      part->ghosts.commit();
    }
  }
  Part& part_of(std::uint64_t hash) const { return *parts_[shard_of(hash)]; }

  const EntryShape shape;
  std::uint16_t number = 0;  // in EntryHead::table
  /// Bundles brought by a prefetch that were lost before anyone asked for them.
  std::atomic<std::uint64_t> prefetched_in_vain{0};

 private:
  std::uint32_t shard_bits_;
  std::vector<std::unique_ptr<Part>> parts_;
};

}  // namespace rowtide
