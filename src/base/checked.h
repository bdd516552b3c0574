// Arithmetic on numbers that come from files: nothing instead of a wrapped result.
#pragma once

#include <cstdint>
#include <optional>

namespace rowtide {

inline std::optional<std::uint64_t> checked_add(std::uint64_t a, std::uint64_t b) {
  std::uint64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) return std::nullopt;
  return sum;
}

inline std::optional<std::uint64_t> checked_mul(std::uint64_t a, std::uint64_t b) {
  std::uint64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) return std::nullopt;
  return product;
}

/// `value` rounded up to a multiple of `step` (a power of two).
inline std::optional<std::uint64_t> checked_align_up(std::uint64_t value, std::uint64_t step) {
  auto raised = checked_add(value, step - 1);
  if (!raised) return std::nullopt;
  return *raised & ~(step - 1);
}

}  // namespace rowtide
