// Addressing of the Qwen3.8 n-gram table ("PLE"): every order n of 2..N mixes the last n token ids with
// odd multipliers and reduces the mix modulo one prime per head. The constants are not free: they follow
// from a handful of configuration values, so a checkpoint that stores them can be checked.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "address/xor_constants.h"
#include "rowtide/addressing.h"
#include "rowtide/result.h"

namespace rowtide {

/// What a model's configuration says about its n-gram table.
struct QwenPleConfig {
  std::int64_t vocab_size;                // bounds the multipliers, so that products of known ids never wrap
  TokenId eos_token_id;                   // fills the history before a start, and cuts it wherever it occurs
  std::optional<TokenId> image_token_id;  // stands in for image positions
  std::uint64_t seed = 1234;
  std::uint64_t base;        // head sizes are consecutive primes from here on
  std::uint32_t ngram_size;  // the highest order N: orders are 2..N
  std::uint32_t heads_per_order;
  std::uint32_t dense_index = 0;  // rank of this table's layer among the layers that have one
};

using QwenPleConstants = XorConstants;

/// Derives the constants. kUsage, naming the value, for a configuration no model can have: vocab_size or
/// base below 1, ngram_size outside 2..8, heads_per_order outside 1..64, a dense_index that brings the
/// heads up to and with this table above 4,096, or head sizes whose sum does not fit a signed 64-bit
/// row id. Cost: well under a millisecond for real models, below a second for any.
Result<QwenPleConstants> derive_qwen_ple(const QwenPleConfig& config);

/// The addressing for `config` with `constants`, which must have the lengths and the validity that
/// derive_qwen_ple() gives (asserted): derive them, or compare stored ones with the derived.
std::shared_ptr<const Addressing> make_qwen_ple(const QwenPleConfig& config, const QwenPleConstants& constants);

/// The configuration of the released Qwen3.8-Flash-Next; its table belongs to decoder layer 1.
QwenPleConfig released_qwen_ple();

}  // namespace rowtide
