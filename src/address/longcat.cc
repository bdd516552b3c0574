#include "address/longcat.h"

#include <cassert>

#include "address/invariant_divisor.h"
#include "address/ngram_addressing.h"
#include "address/uint128.h"
#include "address/xor_constants.h"
#include "base/error.h"

namespace rowtide {
namespace {

Error longcat_usage(std::string_view key, auto value, std::string_view rule) {
  return make_error(ErrorCode::kUsage, "{} {} is no configuration of a longcat table: {}", key, value, rule);
}

std::uint64_t heads_of(const LongcatConfig& config) {
  return std::uint64_t{config.ngram_size - 1} * config.heads_per_order;
}

Result<void> check(const LongcatConfig& config) {
  if (config.vocab_size < 1) return longcat_usage("vocab_size", config.vocab_size, "it must be at least 1");
  if (config.ngram_size < 2 || config.ngram_size > kMaxNgramSize) {
    return longcat_usage("ngram_size", config.ngram_size, "it must be 2 to 8");
  }
  if (config.heads_per_order < 1 || config.heads_per_order > kMaxHeadsPerOrder) {
    return longcat_usage("heads_per_order", config.heads_per_order, "it must be 1 to 64");
  }
  if (config.size_ratio < 1) return longcat_usage("size_ratio", config.size_ratio, "it must be at least 1");
  // Largest size first, then that it times every id of a window stays below 2^63; so do the row ids.
  const Uint128 vocab = static_cast<std::uint64_t>(config.vocab_size);
  const Uint128 largest = vocab * config.size_ratio + 2 * heads_of(config);
  if (largest > kMaxInt64 / heads_of(config) || largest > kMaxInt64 / config.ngram_size / vocab) {
    return longcat_usage("size_ratio", config.size_ratio, "sums of token ids would not fit a signed 64-bit number");
  }
  return {};
}

// A token that is not there, for lack of one or behind an end of sequence, counts as 0.
class LongcatRules {
 public:
  static constexpr std::string_view kFamily = "longcat";
  static constexpr bool kFullHistory = false;

  LongcatRules(const LongcatConfig& config, const LongcatConstants& constants)
      : eos_(config.eos_token_id), heads_per_order_(config.heads_per_order) {
    assert(constants.head_sizes.size() == heads_of(config));
    assert(constants.head_offsets.size() == heads_of(config) && constants.powers.size() == heads_of(config));
    for (std::size_t i = 0; i < constants.head_sizes.size(); ++i) {
      assert(constants.powers[i].size() == i / heads_per_order_ + 1);
      heads_.push_back({InvariantDivisor(constants.head_sizes[i]), constants.head_offsets[i]});
      powers_.insert(powers_.end(), constants.powers[i].begin(), constants.powers[i].end());
    }
  }

  TokenId start_id() const { return eos_; }
  std::optional<TokenId> image_token_id() const { return std::nullopt; }
  std::uint64_t row_count() const { return heads_.back().offset + heads_.back().size.divisor(); }
  Word fill() const { return 0; }
  void enter(TokenId token, NgramWindow& window) const { window[0] = static_cast<Word>(token); }

  RowId* hash(const NgramWindow& window, RowId* out) const {
    const std::uint64_t* power = powers_.data();
    const Head* head = heads_.data();
    for (std::size_t order = 2; head != heads_.data() + heads_.size(); ++order) {
      for (std::uint32_t i = 0; i < heads_per_order_; ++i, ++head) {
        Word sum = window[0];
        for (std::size_t back = 1; back < order; ++back) sum += window[back] * *power++;
        *out++ = head->size.floor_mod(sum) + head->offset;
      }
    }
    return out;
  }

  void leave(NgramWindow& window) const {
    if (window[0] == static_cast<Word>(eos_)) {
      window.fill(0);
    } else {
      shift(window);
    }
  }

 private:
  struct Head {
    InvariantDivisor size;
    std::uint64_t offset;
  };

  TokenId eos_;
  std::uint32_t heads_per_order_;
  std::vector<Head> heads_;            // order by order
  std::vector<std::uint64_t> powers_;  // of the first head, of the second...
};

}  // namespace

Result<LongcatConstants> derive_longcat(const LongcatConfig& config) {
  if (auto checked = check(config); !checked) return checked.error();
  const auto vocab = static_cast<std::uint64_t>(config.vocab_size);
  LongcatConstants constants;
  for (std::uint64_t i = 0; i < heads_of(config); ++i) {
    const std::uint64_t size = config.size_ratio * vocab + 2 * i + 1;
    constants.head_sizes.push_back(size);
    std::vector<std::uint64_t>& powers = constants.powers.emplace_back();
    std::uint64_t power = 1;
    for (std::uint64_t back = 1; back <= i / config.heads_per_order + 1; ++back) {
      power = static_cast<std::uint64_t>(Uint128{power} * vocab % size);
      powers.push_back(power);
    }
  }
  constants.head_offsets = *head_offsets(constants.head_sizes);
  return constants;
}

std::shared_ptr<const Addressing> make_longcat(const LongcatConfig& config, const LongcatConstants& constants) {
  return std::make_shared<NgramAddressing<LongcatRules>>(config.ngram_size, config.heads_per_order,
                                                         LongcatRules(config, constants));
}

LongcatConfig released_longcat() {
  return {.vocab_size = 131'072, .eos_token_id = 2, .size_ratio = 78, .ngram_size = 4, .heads_per_order = 4};
}

}  // namespace rowtide
