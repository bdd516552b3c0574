#include "address/invariant_divisor.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <vector>

namespace rowtide {
namespace {

// Floor modulo by the textbook: the remainder of `/` takes the sign of the dividend, so mend it.
std::uint64_t floor_mod_by_division(std::uint64_t bits, std::uint64_t divisor) {
  __extension__ typedef __int128 Int128;
  const Int128 rest = Int128{static_cast<std::int64_t>(bits)} % Int128{divisor};
  return static_cast<std::uint64_t>(rest < 0 ? rest + Int128{divisor} : rest);
}

void expect_exact(std::uint64_t divisor, std::uint64_t value) {
  const InvariantDivisor invariant(divisor);
  ASSERT_EQ(invariant.remainder(value), value % divisor) << value << " by " << divisor;
  ASSERT_EQ(invariant.floor_mod(value), floor_mod_by_division(value, divisor)) << value << " by " << divisor;
}

std::vector<std::uint64_t> edges() {
  std::vector<std::uint64_t> values;
  for (int bit = 0; bit < 64; ++bit) {
    for (std::uint64_t near = 0; near < 5; ++near) values.push_back((1ULL << bit) + near - 2);
  }
  return values;
}

TEST(InvariantDivisor, IsExactAroundPowersOfTwo) {
  for (const std::uint64_t divisor : edges()) {
    if (divisor == 0) continue;
    for (const std::uint64_t value : edges()) expect_exact(divisor, value);
  }
}

// Multiples of the divisor and their neighbours are where a quotient taken one off would show.
TEST(InvariantDivisor, IsExactAroundMultiples) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 200'000; ++i) {
    const std::uint64_t divisor = (random() >> (random() % 63)) | 1;
    const std::uint64_t multiple = random() / divisor * divisor;
    for (std::uint64_t near = 0; near < 3; ++near) expect_exact(divisor, multiple + near - 1);
  }
}

TEST(InvariantDivisor, IsExactForRandomNumbers) {
  std::mt19937_64 random(2);
  for (int i = 0; i < 1'000'000; ++i) {
    const std::uint64_t divisor = random() >> (random() % 64);
    if (divisor != 0) expect_exact(divisor, random() >> (random() % 64));
  }
}

}  // namespace
}  // namespace rowtide
