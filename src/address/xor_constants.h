// The constants of the families that mix n-grams by XOR: odd multipliers, and a prime for each head.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

namespace rowtide {

constexpr std::uint64_t kMaxInt64 = std::numeric_limits<std::int64_t>::max();
constexpr std::uint64_t kMaxXorHeads = 4096;    // of one model, all its tables together
constexpr std::uint64_t kSeedPerTable = 10007;  // what the seeds of two neighbouring tables differ by

/// The constants of one table. Heads lie order by order, as in a token's rows.
struct XorConstants {
  std::vector<std::uint64_t> multipliers;   // one for each token of the highest order; [k] goes with the k-th back
  std::vector<std::uint64_t> head_sizes;    // primes
  std::vector<std::uint64_t> head_offsets;  // running sum of head_sizes, from 0

  bool operator==(const XorConstants&) const = default;
};

/// Multipliers are 2 * draw + 1 with draws below this, small enough that a known token id times a multiplier stays
/// below 2^63. `vocab_size` is at least 1.
std::uint64_t multiplier_bound(std::int64_t vocab_size);

/// The running sum of `sizes`, from 0; nothing if a row id would not fit a signed 64-bit number.
std::optional<std::vector<std::uint64_t>> head_offsets(const std::vector<std::uint64_t>& sizes);

}  // namespace rowtide
