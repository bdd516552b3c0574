#include "address/primes.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace rowtide {
namespace {

TEST(Primes, AgreeWithASieve) {
  constexpr std::uint64_t kEnd = 2'000'000;
  std::vector<bool> composite(kEnd, false);
  composite[0] = composite[1] = true;
  for (std::uint64_t i = 2; i * i < kEnd; ++i) {
    for (std::uint64_t j = i * i; !composite[i] && j < kEnd; j += i) composite[j] = true;
  }
  for (std::uint64_t n = 0; n < kEnd; ++n) ASSERT_EQ(is_prime(n), !composite[n]) << n;
}

// Each passes the strong test for several small bases, or for all numbers prime to it the Fermat test.
TEST(Primes, AreNotFooledByPseudoprimes) {
  for (const std::uint64_t n : {2047U, 1373653U, 25326001U, 561U, 41041U, 825265U, 321197185U}) {
    EXPECT_FALSE(is_prime(n)) << n;
  }
  EXPECT_FALSE(is_prime(3215031751));           // bases 2, 3, 5, 7
  EXPECT_FALSE(is_prime(3474749660383));        // bases up to 13
  EXPECT_FALSE(is_prime(341550071728321));      // bases up to 17
  EXPECT_FALSE(is_prime(3825123056546413051));  // bases up to 23
}

TEST(Primes, AreKnownUpToTheEndOf64Bits) {
  EXPECT_TRUE(is_prime((1ULL << 61) - 1));
  EXPECT_TRUE(is_prime(18446744073709551557U));
  EXPECT_FALSE(is_prime(UINT64_MAX));                     // 3 * 5 * 17 * 257 * 641 * 65537 * 6700417
  EXPECT_FALSE(is_prime(4294967291ULL * 4294967291ULL));  // the square of the largest 32-bit prime
  EXPECT_FALSE(is_prime(4294967291ULL * 4294967279ULL));
}

TEST(Primes, NextPrimeIncludesItsArgument) {
  EXPECT_EQ(next_prime(0), 2U);
  EXPECT_EQ(next_prime(2), 2U);
  EXPECT_EQ(next_prime(8), 11U);
  EXPECT_EQ(next_prime(20'000'000), 20'000'003U);
  EXPECT_EQ(next_prime(20'000'161), 20'000'161U);
  EXPECT_EQ(next_prime(18446744073709551534U), 18446744073709551557U);
}

}  // namespace
}  // namespace rowtide
