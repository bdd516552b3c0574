// Exact remainders by a divisor that is fixed beforehand, without a division: one high multiplication gives
// the quotient or one less (Barrett reduction with a 64-bit reciprocal), one subtraction mends it.
#pragma once

#include <cassert>
#include <cstdint>

#include "address/uint128.h"

namespace rowtide {

class InvariantDivisor {
 public:
  /// `divisor` is at least 1.
  explicit InvariantDivisor(std::uint64_t divisor) : divisor_(divisor), reciprocal_(UINT64_MAX / divisor) {
    assert(divisor > 0);
  }

  std::uint64_t divisor() const { return divisor_; }

  /// value % divisor. The reciprocal is below 2^64 / divisor by less than one part, so the quotient taken
  /// is the true one or one less, and the rest lies in [0, 2 * divisor) and cannot exceed `value`.
  std::uint64_t remainder(std::uint64_t value) const {
    const auto quotient = static_cast<std::uint64_t>((Uint128{value} * reciprocal_) >> 64);
    const std::uint64_t rest = value - quotient * divisor_;
    return rest >= divisor_ ? rest - divisor_ : rest;
  }

  /// `bits`, read as a signed number, modulo the divisor with the result in [0, divisor): -1 gives
  /// divisor - 1. For negative v this is divisor - 1 - (~v % divisor), done here without a branch.
  std::uint64_t floor_mod(std::uint64_t bits) const {
    const std::uint64_t sign = bits >> 63 == 0 ? 0 : UINT64_MAX;
    return (remainder(bits ^ sign) ^ sign) + (divisor_ & sign);
  }

 private:
  std::uint64_t divisor_;
  std::uint64_t reciprocal_;
};

}  // namespace rowtide
