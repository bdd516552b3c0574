#include "address/primes.h"

#include <array>
#include <bit>
#include <cassert>

#include "address/uint128.h"

namespace rowtide {
namespace {

constexpr std::uint64_t kLargestPrime = 18446744073709551557U;

// As bases of the strong probable-prime test these twelve leave no composite below 3.18e23 undetected
// (Sorenson and Webster, "Strong pseudoprimes to twelve prime bases", 2015).
constexpr std::array<std::uint64_t, 12> kSmallPrimes = {2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37};

std::uint64_t multiply_mod(std::uint64_t a, std::uint64_t b, std::uint64_t n) {
  return static_cast<std::uint64_t>(Uint128{a} * b % n);
}

std::uint64_t power_mod(std::uint64_t base, std::uint64_t exponent, std::uint64_t n) {
  std::uint64_t power = 1;
  for (; exponent != 0; exponent >>= 1) {
    if ((exponent & 1) != 0) power = multiply_mod(power, base, n);
    base = multiply_mod(base, base, n);
  }
  return power;
}

// Miller-Rabin: n - 1 = odd * 2^twos. A prime n has base^odd == 1, or a square of it on the way up is -1.
bool passes_strong_test(std::uint64_t n, std::uint64_t base) {
  const int twos = std::countr_zero(n - 1);
  std::uint64_t power = power_mod(base, (n - 1) >> twos, n);
  if (power == 1) return true;
  for (int i = 0; i < twos; ++i) {
    if (power == n - 1) return true;
    power = multiply_mod(power, power, n);
  }
  return false;
}

}  // namespace

bool is_prime(std::uint64_t n) {
  if (n < 2) return false;
  for (const std::uint64_t prime : kSmallPrimes) {
    if (n % prime == 0) return n == prime;
  }
  for (const std::uint64_t base : kSmallPrimes) {
    if (!passes_strong_test(n, base)) return false;
  }
  return true;
}

std::uint64_t next_prime(std::uint64_t n) {
  assert(n <= kLargestPrime);
  while (!is_prime(n)) ++n;
  return n;
}

std::uint64_t DistinctPrimes::take(std::uint64_t base) {
  const auto at = reached_.find(base);
  std::uint64_t prime = next_prime(at == reached_.end() ? base : at->second + 1);
  while (!taken_.insert(prime).second) prime = next_prime(prime + 1);
  reached_[base] = prime;
  return prime;
}

}  // namespace rowtide
