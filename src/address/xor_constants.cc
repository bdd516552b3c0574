#include "address/xor_constants.h"

#include <algorithm>

#include "base/checked.h"

namespace rowtide {

std::uint64_t multiplier_bound(std::int64_t vocab_size) {
  return std::max<std::uint64_t>(kMaxInt64 / static_cast<std::uint64_t>(vocab_size) / 2, 1);
}

std::optional<std::vector<std::uint64_t>> head_offsets(const std::vector<std::uint64_t>& sizes) {
  std::vector<std::uint64_t> offsets;
  offsets.reserve(sizes.size());
  std::uint64_t rows = 0;
  for (const std::uint64_t size : sizes) {
    offsets.push_back(rows);
    const auto sum = checked_add(rows, size);
    if (!sum || *sum > kMaxInt64) return std::nullopt;
    rows = *sum;
  }
  return offsets;
}

}  // namespace rowtide
