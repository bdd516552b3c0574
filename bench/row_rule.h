// The rule by which make_table fills a table, so that any row can be recomputed from its id alone.
//
// A row holds 160 values in IQ4_NL: 5 blocks of 18 bytes, each a little-endian fp16 scale and 16 bytes of codes.
// Row r is the first 90 bytes of the little-endian words splitmix64(12 r + k), k = 0..11, after which the bits of
// each block's scale that would make it anything but 2^-7 to 2^-6 (of either sign) are fixed.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "address/splitmix64.h"

namespace rowtide::bench {

inline constexpr std::uint64_t kRowValues = 160;
inline constexpr std::size_t kRowBytes = 90;

/// Writes row `id` to the kRowBytes at `out`.
inline void fill_row(std::uint64_t id, std::byte* out) {
  static_assert(std::endian::native == std::endian::little);
  constexpr std::size_t kWords = (kRowBytes + 7) / 8, kBlockBytes = 18;
  std::uint64_t words[kWords];
  for (std::size_t k = 0; k < kWords; ++k) words[k] = splitmix64(kWords * id + k);
  std::memcpy(out, words, kRowBytes);
  for (std::size_t at = 0; at < kRowBytes; at += kBlockBytes) {
    std::uint16_t scale;
    std::memcpy(&scale, out + at, sizeof scale);
    scale = static_cast<std::uint16_t>((scale & 0x83FF) | 0x2000);
    std::memcpy(out + at, &scale, sizeof scale);
  }
}

/// Whether the kRowBytes at `row` are row `id`.
inline bool is_row(std::uint64_t id, const std::byte* row) {
  std::byte expected[kRowBytes];
  fill_row(id, expected);
  return std::memcmp(expected, row, kRowBytes) == 0;
}

}  // namespace rowtide::bench
