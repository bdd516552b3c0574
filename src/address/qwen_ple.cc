#include "address/qwen_ple.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <limits>

#include "address/invariant_divisor.h"
#include "address/primes.h"
#include "address/splitmix64.h"
#include "base/checked.h"
#include "base/error.h"

namespace rowtide {
namespace {

constexpr std::uint32_t kMaxNgramSize = 8;
constexpr std::uint32_t kMaxHeadsPerOrder = 64;
constexpr std::uint64_t kMaxPrimes = 4096;  // of one model, all its tables together
constexpr std::uint64_t kMaxInt64 = std::numeric_limits<std::int64_t>::max();
constexpr std::uint64_t kSeedPerTable = 10007;

std::uint64_t heads_of(const QwenPleConfig& config) {
  return std::uint64_t{config.ngram_size - 1} * config.heads_per_order;
}

Error usage(std::string_view key, auto value, std::string_view rule) {
  return make_error(ErrorCode::kUsage, "{} {} is no configuration of a qwen_ple table: {}", key, value, rule);
}

Result<void> check(const QwenPleConfig& config) {
  if (config.vocab_size < 1) return usage("vocab_size", config.vocab_size, "it must be at least 1");
  if (config.ngram_size < 2 || config.ngram_size > kMaxNgramSize) {
    return usage("ngram_size", config.ngram_size, "it must be 2 to 8");
  }
  if (config.heads_per_order < 1 || config.heads_per_order > kMaxHeadsPerOrder) {
    return usage("heads_per_order", config.heads_per_order, "it must be 1 to 64");
  }
  const std::uint64_t primes = (std::uint64_t{config.dense_index} + 1) * heads_of(config);
  if (primes > kMaxPrimes) {
    return usage("dense_index", config.dense_index, "up to and with this table the heads must not exceed 4,096");
  }
  if (config.base < 1) return usage("base", config.base, "it must be at least 1");
  // Also keeps the prime search far from the end of 64 bits.
  if (config.base > kMaxInt64 / primes) {
    return usage("base", config.base, "row ids would not fit a signed 64-bit number");
  }
  return {};
}

// Small enough that a known token id times a multiplier stays below 2^63.
std::uint64_t multiplier_bound(std::int64_t vocab_size) {
  return std::max<std::uint64_t>(kMaxInt64 / static_cast<std::uint64_t>(vocab_size) / 2, 1);
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
  std::vector<std::uint64_t> sizes;
  sizes.reserve(heads);
  std::uint64_t prime = config.base - 1;
  for (std::uint64_t i = 0; i < (config.dense_index + 1) * heads; ++i) {
    prime = next_prime(prime + 1);
    if (i >= config.dense_index * heads) sizes.push_back(prime);
  }
  return sizes;
}

// Token ids are hashed as unsigned words: signed multiplication wraps to the same bits.
using Word = std::uint64_t;

class QwenPle final : public Addressing {
 public:
  QwenPle(const QwenPleConfig& config, const QwenPleConstants& constants)
      : eos_(config.eos_token_id),
        image_(config.image_token_id),
        heads_per_order_(config.heads_per_order),
        multipliers_(constants.multipliers) {
    assert(config.ngram_size >= 2 && config.ngram_size <= kMaxNgramSize);
    assert(constants.multipliers.size() == config.ngram_size);
    assert(constants.head_sizes.size() == heads_of(config));
    assert(constants.head_offsets.size() == heads_of(config));
    for (std::uint32_t order = 2; order <= config.ngram_size; ++order) orders_.push_back(order);
    for (std::size_t i = 0; i < constants.head_sizes.size(); ++i) {
      heads_.push_back({InvariantDivisor(constants.head_sizes[i]), constants.head_offsets[i]});
    }
  }

  std::string_view family() const override { return "qwen_ple"; }
  std::span<const std::uint32_t> orders() const override { return orders_; }
  std::uint32_t heads_per_order() const override { return heads_per_order_; }
  std::uint64_t row_count() const override { return heads_.back().offset + heads_.back().size.divisor(); }
  std::size_t history_tokens() const override { return orders_.size(); }
  History start() const override { return History(history_tokens(), eos_); }
  std::optional<TokenId> image_token_id() const override { return image_; }

  void rows(std::span<const TokenId> tokens, History& history, std::span<RowId> ids) const override {
    assert(ids.size() == tokens.size() * rows_per_token());
    complete(history);
    Window window = window_after(history);
    RowId* out = ids.data();
    for (const TokenId token : tokens) {
      window[0] = static_cast<Word>(token);
      out = hash(window, out);
      advance(window);
    }
    carry(tokens, history);
  }

 private:
  struct Head {
    InvariantDivisor size;
    std::uint64_t offset;
  };

  // [s] is the token s positions back as it is hashed: the first EOS behind the current token, and
  // everything older, reads as EOS.
  using Window = std::array<Word, kMaxNgramSize>;

  // Exactly history_tokens() ids: older ones do not count, before a start there is EOS.
  void complete(History& history) const {
    const std::size_t wanted = history_tokens();
    if (history.size() > wanted) {
      history.erase(history.begin(), history.end() - static_cast<std::ptrdiff_t>(wanted));
    } else {
      history.insert(history.begin(), wanted - history.size(), eos_);
    }
  }

  // Ready for the next token, which goes to [0].
  Window window_after(const History& history) const {
    Window window;
    window.fill(static_cast<Word>(eos_));
    for (const TokenId token : history) {
      window[0] = static_cast<Word>(token);
      advance(window);
    }
    return window;
  }

  // Makes the current token the one before; an EOS leaves nothing but EOS behind it.
  void advance(Window& window) const {
    if (window[0] == static_cast<Word>(eos_)) {
      window.fill(static_cast<Word>(eos_));
    } else {
      std::copy_backward(window.begin(), window.end() - 1, window.end());
    }
  }

  // One token's rows; returns the end of what was written.
  RowId* hash(const Window& window, RowId* out) const {
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

  // Replaces the oldest ids of a complete history by the newest of `tokens`.
  static void carry(std::span<const TokenId> tokens, History& history) {
    const auto fresh = static_cast<std::ptrdiff_t>(std::min(tokens.size(), history.size()));
    std::copy(history.begin() + fresh, history.end(), history.begin());
    std::copy(tokens.end() - fresh, tokens.end(), history.end() - fresh);
  }

  TokenId eos_;
  std::optional<TokenId> image_;
  std::uint32_t heads_per_order_;
  std::vector<std::uint32_t> orders_;
  std::vector<std::uint64_t> multipliers_;
  std::vector<Head> heads_;  // order by order
};

}  // namespace

Result<QwenPleConstants> derive_qwen_ple(const QwenPleConfig& config) {
  if (auto checked = check(config); !checked) return checked.error();
  QwenPleConstants constants;
  constants.multipliers = derive_multipliers(config);
  constants.head_sizes = derive_head_sizes(config);
  std::uint64_t rows = 0;
  for (const std::uint64_t size : constants.head_sizes) {
    constants.head_offsets.push_back(rows);
    const auto sum = checked_add(rows, size);
    if (!sum || *sum > kMaxInt64) return usage("base", config.base, "row ids would not fit a signed 64-bit number");
    rows = *sum;
  }
  return constants;
}

std::shared_ptr<const Addressing> make_qwen_ple(const QwenPleConfig& config, const QwenPleConstants& constants) {
  return std::make_shared<QwenPle>(config, constants);
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
