// What the two Engram families have in common: their configuration and the constants that follow from it. They hash
// compressed ids (token_map.h) as qwen_ple hashes its own, with other multipliers and one run of primes for each base.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "address/token_map.h"
#include "address/xor_constants.h"
#include "rowtide/addressing.h"
#include "rowtide/result.h"

namespace rowtide {

/// What a model's configuration says about its Engram tables, of which each layer named has one.
struct EngramConfig {
  std::int64_t compressed_vocab_size;         // of the token map; bounds the multipliers
  std::vector<std::uint32_t> layer_ids;       // 0-based, in the order of the configuration
  std::vector<std::uint64_t> base_per_order;  // of the orders 2, 3...: head sizes are primes from here on
  std::uint32_t heads_per_order;
  TokenId pad_token_id;  // a tokenizer id; stands for what is missing before a start
  std::uint64_t seed = 0;
  std::optional<TokenId> image_token_id;  // a tokenizer id; dead in deepseek_engram, without a meaning in the demo

  std::uint32_t ngram_size() const { return static_cast<std::uint32_t>(base_per_order.size()) + 1; }
};

/// The constants of each layer, in the order of layer_ids. kUsage, naming the value, for a configuration no model can
/// have: compressed_vocab_size outside 1..2^29, no layer or one named twice, orders outside 2..8, heads_per_order
/// outside 1..64, more than 4,096 heads in all, a base of 0, head sizes whose sum does not fit a signed 64-bit row id,
/// a seed beyond 64 bits. Cost: well under a millisecond for real models, below a few seconds for any.
Result<std::vector<XorConstants>> derive_engram(const EngramConfig& config);

/// The checks of check_token_map(), and that the pad token has an entry in the map.
Result<void> check_engram_map(const EngramConfig& config, const TokenMap& map);

}  // namespace rowtide
