#include "address/deepseek_engram.h"

#include <utility>

#include "address/ngram_addressing.h"
#include "address/xor_heads.h"

namespace rowtide {
namespace {

constexpr TokenId kDead = -1;

class DeepseekEngramRules {
 public:
  static constexpr std::string_view kFamily = "deepseek_engram";
  static constexpr bool kFullHistory = false;

  DeepseekEngramRules(const EngramConfig& config, const XorConstants& constants, TokenMap map)
      : image_(config.image_token_id.has_value() && !map ? kDead : config.image_token_id),
        map_(std::move(map)),
        known_(map_ ? map_->size() : static_cast<std::uint64_t>(config.compressed_vocab_size)),
        pad_(compressed(config.pad_token_id)),
        heads_(constants, config.heads_per_order) {}

  TokenId start_id() const { return kDead; }
  std::optional<TokenId> image_token_id() const { return image_; }
  std::uint64_t row_count() const { return heads_.row_count(); }
  Word fill() const { return pad_; }
  RowId* hash(const NgramWindow& window, RowId* out) const { return heads_.hash(window, out); }
  void leave(NgramWindow& window) const { shift(window); }

  void enter(TokenId token, NgramWindow& window) const {
    if (static_cast<Word>(token) >= known_ || token == image_) {
      window.fill(pad_);
    } else {
      window[0] = compressed(token);
    }
  }

 private:
  Word compressed(TokenId token) const {
    return static_cast<Word>(map_ ? (*map_)[static_cast<std::size_t>(token)] : token);
  }

  std::optional<TokenId> image_;
  TokenMap map_;
  std::uint64_t known_;  // token ids 0 up to this
  Word pad_;
  XorHeads heads_;
};

}  // namespace

Result<std::shared_ptr<const Addressing>> make_deepseek_engram(const EngramConfig& config,
                                                               const XorConstants& constants, TokenMap map) {
  if (auto checked = check_engram_map(config, map); !checked) return checked.error();
  return {std::make_shared<NgramAddressing<DeepseekEngramRules>>(
      config.ngram_size(), config.heads_per_order, DeepseekEngramRules(config, constants, std::move(map)))};
}

EngramConfig released_deepseek_engram() {
  return {.compressed_vocab_size = 99092,
          .layer_ids = {1, 14},
          .base_per_order = {16'000'000, 16'000'000, 16'000'000},
          .heads_per_order = 8,
          .pad_token_id = 2,
          .image_token_id = 129264};
}

}  // namespace rowtide
