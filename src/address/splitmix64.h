// SplitMix64 (Steele, Lea, Flood, "Fast Splittable Pseudorandom Number Generators", 2014): one step of the
// generator as a function of its state. All arithmetic wraps modulo 2^64.
#pragma once

#include <cstdint>

namespace rowtide {

/// What the state grows by from one output to the next: 2^64 divided by the golden ratio, made odd.
constexpr std::uint64_t kSplitmix64Gamma = 0x9E3779B97F4A7C15;

/// The output for state `state`; it adds the gamma itself. splitmix64(0) == 0xe220a8397b1dcdaf.
constexpr std::uint64_t splitmix64(std::uint64_t state) {
  std::uint64_t z = state + kSplitmix64Gamma;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

}  // namespace rowtide
