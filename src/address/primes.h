// Prime numbers for the sizes of hash heads.
#pragma once

#include <cstdint>
#include <map>
#include <set>

namespace rowtide {

/// Whether `n` is prime; exact for every 64-bit number.
bool is_prime(std::uint64_t n);

/// The smallest prime >= `n`, which must not exceed the largest 64-bit prime, 2^64 - 59 (asserted).
std::uint64_t next_prime(std::uint64_t n);

/// Hands out primes, each once: no two heads of a model have the same size.
class DistinctPrimes {
 public:
  /// The smallest prime >= `base` that was not handed out before; `base` as for next_prime().
  std::uint64_t take(std::uint64_t base);

 private:
  std::set<std::uint64_t> taken_;
  std::map<std::uint64_t, std::uint64_t> reached_;  // by base: every prime from it up to this is taken
};

}  // namespace rowtide
