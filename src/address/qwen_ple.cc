#include "address/qwen_ple.h"

#include <cassert>

#include "address/ngram_addressing.h"
#include "address/primes.h"
#include "address/splitmix64.h"
#include "address/xor_heads.h"
#include "base/error.h"

namespace rowtide {
namespace {

std::uint64_t heads_of(const QwenPleConfig& config) {
  return std::uint64_t{config.ngram_size - 1} * config.heads_per_order;
}

Error qwen_ple_usage(std::string_view key, auto value, std::string_view rule) {
  return make_error(ErrorCode::kUsage, "{} {} is no configuration of a qwen_ple table: {}", key, value, rule);
}

Result<void> check(const QwenPleConfig& config) {
  if (config.vocab_size < 1) return qwen_ple_usage("vocab_size", config.vocab_size, "it must be at least 1");
  if (config.ngram_size < 2 || config.ngram_size > kMaxNgramSize) {
    return qwen_ple_usage("ngram_size", config.ngram_size, "it must be 2 to 8");
  }
  if (config.heads_per_order < 1 || config.heads_per_order > kMaxHeadsPerOrder) {
    return qwen_ple_usage("heads_per_order", config.heads_per_order, "it must be 1 to 64");
  }
  const std::uint64_t primes = (std::uint64_t{config.dense_index} + 1) * heads_of(config);
  if (primes > kMaxXorHeads) {
    return qwen_ple_usage("dense_index", config.dense_index,
                          "up to and with this table the heads must not exceed 4,096");
  }
  if (config.base < 1) return qwen_ple_usage("base", config.base, "it must be at least 1");
  // Also keeps the prime search far from the end of 64 bits.
  if (config.base > kMaxInt64 / primes) {
    return qwen_ple_usage("base", config.base, "row ids would not fit a signed 64-bit number");
  }
  return {};
}

std::vector<std::uint64_t> derive_multipliers(const QwenPleConfig& config) {
  const std::uint64_t bound = multiplier_bound(config.vocab_size);
  std::uint64_t state = config.seed + kSeedPerTable * config.dense_index;
  std::vector<std::uint64_t> multipliers(config.ngram_size);
  for (std::uint64_t& multiplier : multipliers) {
    state += kSplitmix64Gamma;
    multiplier = 2 * (splitmix64(state) % bound) + 1;
  }
  return multipliers;
}

// The run of primes goes on from table to table; this table's part of it.
std::vector<std::uint64_t> derive_head_sizes(const QwenPleConfig& config) {
  const std::uint64_t heads = heads_of(config);
  DistinctPrimes primes;
  for (std::uint64_t i = 0; i < config.dense_index * heads; ++i) primes.take(config.base);
  std::vector<std::uint64_t> sizes(heads);
  for (std::uint64_t& size : sizes) size = primes.take(config.base);
  return sizes;
}

// The first EOS behind the current token, and everything older, reads as EOS.
class QwenPleRules {
 public:
  static constexpr std::string_view kFamily = "qwen_ple";
  static constexpr bool kFullHistory = true;

  QwenPleRules(const QwenPleConfig& config, const QwenPleConstants& constants)
      : eos_(config.eos_token_id), image_(config.image_token_id), heads_(constants, config.heads_per_order) {}

  TokenId start_id() const { return eos_; }
  std::optional<TokenId> image_token_id() const { return image_; }
  std::uint64_t row_count() const { return heads_.row_count(); }
  Word fill() const { return static_cast<Word>(eos_); }
  void enter(TokenId token, NgramWindow& window) const { window[0] = static_cast<Word>(token); }
  RowId* hash(const NgramWindow& window, RowId* out) const { return heads_.hash(window, out); }

  void leave(NgramWindow& window) const {
    if (window[0] == static_cast<Word>(eos_)) {
      window.fill(static_cast<Word>(eos_));
    } else {
      shift(window);
    }
  }

 private:
  TokenId eos_;
  std::optional<TokenId> image_;
  XorHeads heads_;
};

}  // namespace

Result<QwenPleConstants> derive_qwen_ple(const QwenPleConfig& config) {
  if (auto checked = check(config); !checked) return checked.error();
  QwenPleConstants constants;
  constants.multipliers = derive_multipliers(config);
  constants.head_sizes = derive_head_sizes(config);
  auto offsets = head_offsets(constants.head_sizes);
  if (!offsets) return qwen_ple_usage("base", config.base, "row ids would not fit a signed 64-bit number");
  constants.head_offsets = *std::move(offsets);
  return constants;
}

std::shared_ptr<const Addressing> make_qwen_ple(const QwenPleConfig& config, const QwenPleConstants& constants) {
  assert(constants.multipliers.size() == config.ngram_size);
  return std::make_shared<NgramAddressing<QwenPleRules>>(config.ngram_size, config.heads_per_order,
                                                         QwenPleRules(config, constants));
}

QwenPleConfig released_qwen_ple() {
  return {.vocab_size = 248320,
          .eos_token_id = 248044,
          .image_token_id = 248056,
          .base = 20'000'000,
          .ngram_size = 3,
          .heads_per_order = 8};
}

}  // namespace rowtide
