#include "address/engram_demo.h"

#include <algorithm>
#include <utility>

#include "address/ngram_addressing.h"
#include "address/xor_heads.h"

namespace rowtide {
namespace {

class EngramDemoRules {
 public:
  static constexpr std::string_view kFamily = "engram_demo";
  static constexpr bool kFullHistory = false;

  EngramDemoRules(const EngramConfig& config, const XorConstants& constants, TokenMap map)
      : pad_token_(config.pad_token_id),
        map_(std::move(map)),
        last_(map_ ? static_cast<TokenId>(map_->size()) - 1 : config.compressed_vocab_size - 1),
        heads_(constants, config.heads_per_order) {}

  TokenId start_id() const { return pad_token_; }
  std::optional<TokenId> image_token_id() const { return std::nullopt; }
  std::uint64_t row_count() const { return heads_.row_count(); }
  Word fill() const { return compressed(pad_token_); }
  void enter(TokenId token, NgramWindow& window) const { window[0] = compressed(token); }
  RowId* hash(const NgramWindow& window, RowId* out) const { return heads_.hash(window, out); }
  void leave(NgramWindow& window) const { shift(window); }

 private:
  Word compressed(TokenId token) const {
    token = std::min(token, last_);
    return static_cast<Word>(map_ && token >= 0 ? (*map_)[static_cast<std::size_t>(token)] : token);
  }

  TokenId pad_token_;
  TokenMap map_;
  TokenId last_;
  XorHeads heads_;
};

}  // namespace

Result<std::shared_ptr<const Addressing>> make_engram_demo(const EngramConfig& config, const XorConstants& constants,
                                                           TokenMap map) {
  if (auto checked = check_engram_map(config, map); !checked) return checked.error();
  return {std::make_shared<NgramAddressing<EngramDemoRules>>(config.ngram_size(), config.heads_per_order,
                                                             EngramDemoRules(config, constants, std::move(map)))};
}

EngramConfig released_engram_demo() {
  return {.compressed_vocab_size = 98627,
          .layer_ids = {1, 15},
          .base_per_order = {646'400, 646'400},
          .heads_per_order = 8,
          .pad_token_id = 2,
          .image_token_id = std::nullopt};
}

}  // namespace rowtide
