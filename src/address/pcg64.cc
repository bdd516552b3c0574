#include "address/pcg64.h"

#include <bit>
#include <cassert>
#include <cstddef>

namespace rowtide {
namespace {

// A multiplicative hash of 32-bit words whose constant changes from word to word.
class WordHash {
 public:
  WordHash(std::uint32_t start, std::uint32_t multiplier) : constant_(start), multiplier_(multiplier) {}

  std::uint32_t operator()(std::uint32_t word) {
    word ^= constant_;
    constant_ *= multiplier_;
    word *= constant_;
    return word ^ (word >> 16);
  }

 private:
  std::uint32_t constant_;
  std::uint32_t multiplier_;
};

std::uint32_t mix(std::uint32_t x, std::uint32_t y) {
  const std::uint32_t mixed = 0xca01f9ddU * x - 0x4973f715U * y;
  return mixed ^ (mixed >> 16);
}

constexpr Uint128 kMultiplier = (Uint128{0x2360ed051fc65da4} << 64) | 0x4385df649fccf645;

Uint128 joined(std::uint64_t high, std::uint64_t low) { return (Uint128{high} << 64) | low; }

}  // namespace

std::array<std::uint64_t, 4> seed_sequence_words(std::uint64_t seed) {
  std::array<std::uint32_t, 4> pool = {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32), 0, 0};
  WordHash absorb(0x43b0d7e5, 0x931e8875);
  for (std::uint32_t& word : pool) word = absorb(word);
  for (std::size_t from = 0; from < pool.size(); ++from) {
    for (std::size_t to = 0; to < pool.size(); ++to) {
      if (to != from) pool[to] = mix(pool[to], absorb(pool[from]));
    }
  }
  std::array<std::uint64_t, 4> words;
  WordHash emit(0x8b51f9dd, 0x58f38ded);
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::uint32_t low = emit(pool[2 * i % 4]);
    const std::uint32_t high = emit(pool[(2 * i + 1) % 4]);
    words[i] = (std::uint64_t{high} << 32) | low;
  }
  return words;
}

Pcg64::Pcg64(std::uint64_t seed) {
  const auto words = seed_sequence_words(seed);
  increment_ = (joined(words[2], words[3]) << 1) | 1;
  step();
  state_ += joined(words[0], words[1]);
  step();
}

void Pcg64::step() { state_ = state_ * kMultiplier + increment_; }

std::uint64_t Pcg64::next() {
  step();
  const std::uint64_t folded = static_cast<std::uint64_t>(state_ >> 64) ^ static_cast<std::uint64_t>(state_);
  return std::rotr(folded, static_cast<int>(state_ >> 122));
}

// Lemire, "Fast Random Integer Generation in an Interval" (2019): a high product, drawn again where its low half says
// that the value would come up once too often.
std::uint64_t Pcg64::below(std::uint64_t bound) {
  assert(bound > UINT64_C(1) << 32);
  Uint128 product = Uint128{next()} * bound;
  if (static_cast<std::uint64_t>(product) < bound) {
    const std::uint64_t threshold = -bound % bound;
    while (static_cast<std::uint64_t>(product) < threshold) product = Uint128{next()} * bound;
  }
  return static_cast<std::uint64_t>(product >> 64);
}

}  // namespace rowtide
