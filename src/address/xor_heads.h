// The hash of the families that mix n-grams by XOR: token ids times odd multipliers, reduced modulo one prime a head.
#pragma once

#include <cassert>
#include <cstdint>
#include <vector>

#include "address/invariant_divisor.h"
#include "address/ngram_addressing.h"
#include "address/xor_constants.h"

namespace rowtide {

class XorHeads {
 public:
  /// One size and one offset for each head of the orders 2..multipliers.size() (asserted).
  XorHeads(const XorConstants& constants, std::uint32_t heads_per_order)
      : multipliers_(constants.multipliers), heads_per_order_(heads_per_order) {
    assert(multipliers_.size() >= 2 && multipliers_.size() <= kMaxNgramSize);
    assert(constants.head_sizes.size() == (multipliers_.size() - 1) * heads_per_order);
    assert(constants.head_offsets.size() == constants.head_sizes.size());
    for (std::size_t i = 0; i < constants.head_sizes.size(); ++i) {
      heads_.push_back({InvariantDivisor(constants.head_sizes[i]), constants.head_offsets[i]});
    }
  }

  std::uint64_t row_count() const { return heads_.back().offset + heads_.back().size.divisor(); }

  /// The rows of the window's current token; returns the end of what was written.
  RowId* hash(const NgramWindow& window, RowId* out) const {
    Word mix = window[0] * multipliers_[0];
    const Head* head = heads_.data();
    for (std::size_t back = 1; back < multipliers_.size(); ++back) {
      mix ^= window[back] * multipliers_[back];
      for (std::uint32_t i = 0; i < heads_per_order_; ++i, ++head) {
        *out++ = head->size.floor_mod(mix) + head->offset;
      }
    }
    return out;
  }

 private:
  struct Head {
    InvariantDivisor size;
    std::uint64_t offset;
  };

  std::vector<std::uint64_t> multipliers_;
  std::uint32_t heads_per_order_;
  std::vector<Head> heads_;  // order by order
};

}  // namespace rowtide
