#include "address/engram.h"

#include <set>

#include "address/ngram_addressing.h"
#include "address/pcg64.h"
#include "address/primes.h"
#include "base/checked.h"
#include "base/error.h"

namespace rowtide {
namespace {

// Keeps the bound of the multipliers above 2^32, below which numpy draws in another way.
constexpr std::int64_t kMaxCompressedVocab = 1 << 29;

Error engram_usage(std::string_view key, auto value, std::string_view rule) {
  return make_error(ErrorCode::kUsage, "{} {} is no configuration of an Engram table: {}", key, value, rule);
}

std::uint64_t heads_of_table(const EngramConfig& config) {
  return std::uint64_t{config.heads_per_order} * config.base_per_order.size();
}

std::optional<std::uint64_t> seed_of(const EngramConfig& config, std::uint32_t layer) {
  return checked_add(config.seed, kSeedPerTable * layer);
}

Result<void> check_layers(const EngramConfig& config) {
  std::set<std::uint32_t> seen;
  for (const std::uint32_t layer : config.layer_ids) {
    if (!seen.insert(layer).second) return engram_usage("layer_ids", layer, "it is named twice");
    if (!seed_of(config, layer)) return engram_usage("seed", config.seed, "with the layer's share it exceeds 64 bits");
  }
  if (seen.empty()) return engram_usage("layer_ids", "[]", "at least one layer must have a table");
  if (seen.size() > kMaxXorHeads / heads_of_table(config)) {
    return engram_usage("layer_ids", fmt::format("(of {} layers)", seen.size()),
                        "the heads must not exceed 4,096 in all");
  }
  return {};
}

Result<void> check(const EngramConfig& config) {
  if (config.compressed_vocab_size < 1 || config.compressed_vocab_size > kMaxCompressedVocab) {
    return engram_usage("compressed_vocab_size", config.compressed_vocab_size, "it must be 1 to 536,870,912");
  }
  if (config.base_per_order.empty() || config.ngram_size() > kMaxNgramSize) {
    return engram_usage("max_ngram_size", config.base_per_order.size() + 1, "it must be 2 to 8");
  }
  if (config.heads_per_order < 1 || config.heads_per_order > kMaxHeadsPerOrder) {
    return engram_usage("heads_per_order", config.heads_per_order, "it must be 1 to 64");
  }
  if (auto layers = check_layers(config); !layers) return layers;
  for (const std::uint64_t base : config.base_per_order) {
    if (base < 1) return engram_usage("base", base, "it must be at least 1");
    // Also keeps the prime search far from the end of 64 bits.
    if (base > kMaxInt64 / heads_of_table(config)) {
      return engram_usage("base", base, "row ids would not fit a signed 64-bit number");
    }
  }
  return {};
}

std::vector<std::uint64_t> derive_multipliers(const EngramConfig& config, std::uint32_t layer) {
  Pcg64 random(*seed_of(config, layer));
  std::vector<std::uint64_t> multipliers(config.ngram_size());
  for (std::uint64_t& multiplier : multipliers) {
    multiplier = 2 * random.below(multiplier_bound(config.compressed_vocab_size)) + 1;
  }
  return multipliers;
}

}  // namespace

Result<std::vector<XorConstants>> derive_engram(const EngramConfig& config) {
  if (auto checked = check(config); !checked) return checked.error();
  std::vector<XorConstants> layers;
  DistinctPrimes primes;
  for (const std::uint32_t layer : config.layer_ids) {
    XorConstants& constants = layers.emplace_back();
    constants.multipliers = derive_multipliers(config, layer);
    for (const std::uint64_t base : config.base_per_order) {
      for (std::uint32_t head = 0; head < config.heads_per_order; ++head) {
        constants.head_sizes.push_back(primes.take(base));
      }
    }
    auto offsets = head_offsets(constants.head_sizes);
    if (!offsets) {
      return engram_usage("base", config.base_per_order.front(), "row ids would not fit a signed 64-bit number");
    }
    constants.head_offsets = *std::move(offsets);
  }
  return layers;
}

Result<void> check_engram_map(const EngramConfig& config, const TokenMap& map) {
  if (auto checked = check_token_map(map, config.compressed_vocab_size); !checked) return checked;
  const std::int64_t ids = map ? static_cast<std::int64_t>(map->size()) : config.compressed_vocab_size;
  if (config.pad_token_id >= 0 && config.pad_token_id < ids) return {};
  return make_error(ErrorCode::kMismatch, "pad_token_id {} is none of the {} token ids that the token map knows",
                    config.pad_token_id, ids);
}

}  // namespace rowtide
