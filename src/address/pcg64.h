// The random numbers that the published Engram code draws its multipliers from: numpy's default_rng(), which is
// PCG64 (O'Neill, "PCG: A Family of Simple Fast Space-Efficient Statistically Good Algorithms for Random Number
// Generation", 2014; the variant XSL-RR 128/64) seeded through numpy's SeedSequence.
#pragma once

#include <array>
#include <cstdint>

#include "address/uint128.h"

namespace rowtide {

/// The four words that SeedSequence(seed).generate_state(4, uint64) gives.
std::array<std::uint64_t, 4> seed_sequence_words(std::uint64_t seed);

class Pcg64 {
 public:
  /// In the state of default_rng(seed).
  explicit Pcg64(std::uint64_t seed);

  std::uint64_t next();

  /// The next of integers(0, bound): uniform below `bound`, which must exceed 2^32 (asserted; numpy draws smaller ones
  /// another way).
  std::uint64_t below(std::uint64_t bound);

 private:
  void step();

  Uint128 state_ = 0;
  Uint128 increment_;
};

}  // namespace rowtide
