// The ghost list of S3-FIFO: which bundles left the small queue not long ago without having been asked for
// again. Fingerprints only; a false yes costs a place in the main queue, nothing else.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "address/uint128.h"
#include "cache/zeroed_array.h"

namespace rowtide {

/// Remembers about the last `entries` insertions. Four bytes a cell, sets of four cells, the oldest of a set
/// makes room. Threads: one at a time.
class GhostList {
 public:
  explicit GhostList(std::uint64_t entries)
      : sets_(std::max<std::uint64_t>(1, entries / 3)),
        insertions_a_tick_(std::max<std::uint64_t>(1, entries / kAge)) {}

  void commit() const { sets_.commit(); }
  void prefetch(std::uint64_t hash) { __builtin_prefetch(&set_of(hash), 1); }

  void insert(std::uint64_t hash) {
    if (++insertions_ % insertions_a_tick_ == 0) tick_ = (tick_ + 1) & kTickMask;
    Set& set = set_of(hash);
    std::uint32_t* oldest = set.data();
    for (std::uint32_t& cell : set) {
      if (cell == 0 || age(cell) > age(*oldest)) oldest = &cell;
      if (cell == 0) break;
    }
    *oldest = fingerprint(hash) | tick_;
  }

  /// Whether it was there; it is no longer.
  bool take(std::uint64_t hash) {
    for (std::uint32_t& cell : set_of(hash)) {
      if ((cell & ~kTickMask) != fingerprint(hash) || age(cell) > kAge) continue;
      cell = 0;
      return true;
    }
    return false;
  }

  std::uint64_t memory_bytes() const { return sets_.bytes(); }
  static std::uint64_t memory_bytes_for(std::uint64_t entries) {
    return std::max<std::uint64_t>(1, entries / 3) * sizeof(Set);
  }

 private:
  using Set = std::array<std::uint32_t, 4>;
  static constexpr int kTickBits = 12;
  static constexpr std::uint32_t kTickMask = (1u << kTickBits) - 1;
  static constexpr std::uint32_t kAge = 1u << (kTickBits - 2);  // ticks until a cell counts as forgotten

  static std::uint32_t fingerprint(std::uint64_t hash) {
    const auto bits = static_cast<std::uint32_t>(hash) & ~kTickMask;
    return bits != 0 ? bits : 1u << kTickBits;  // 0 is an empty cell
  }
  std::uint32_t age(std::uint32_t cell) const { return (tick_ - cell) & kTickMask; }
  Set& set_of(std::uint64_t hash) { return sets_[static_cast<std::uint64_t>((Uint128{hash} * sets_.size()) >> 64)]; }

  ZeroedArray<Set> sets_;
  std::uint64_t insertions_a_tick_;
  std::uint64_t insertions_ = 0;
  std::uint32_t tick_ = 0;
};

}  // namespace rowtide
