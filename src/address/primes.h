// Prime numbers for the sizes of hash heads.
#pragma once

#include <cstdint>

namespace rowtide {

/// Whether `n` is prime; exact for every 64-bit number.
bool is_prime(std::uint64_t n);

/// The smallest prime >= `n`, which must not exceed the largest 64-bit prime, 2^64 - 59 (asserted).
std::uint64_t next_prime(std::uint64_t n);

}  // namespace rowtide
