#include "address/unigram.h"

#include <algorithm>
#include <cassert>

#include "base/error.h"

namespace rowtide {
namespace {

class Unigram final : public Addressing {
 public:
  explicit Unigram(const UnigramConfig& config)
      : rows_(static_cast<std::uint64_t>(config.vocab_size)),
        pad_row_(static_cast<RowId>(config.pad_token_id)),
        image_(config.image_token_id),
        media_(config.other_media_token_ids) {
    if (image_) media_.push_back(*image_);
  }

  std::string_view family() const override { return "unigram"; }
  std::span<const std::uint32_t> orders() const override { return kOrders; }
  std::uint32_t heads_per_order() const override { return 1; }
  std::uint64_t row_count() const override { return rows_; }
  std::size_t history_tokens() const override { return 0; }
  History start() const override { return {}; }
  std::optional<TokenId> image_token_id() const override { return image_; }

  void rows(std::span<const TokenId> tokens, History& history, std::span<RowId> ids) const override {
    assert(ids.size() == tokens.size());
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      const auto id = static_cast<std::uint64_t>(tokens[i]);
      const bool is_media = std::find(media_.begin(), media_.end(), tokens[i]) != media_.end();
      ids[i] = is_media ? pad_row_ : id < rows_ ? id : 0;
    }
    history.clear();
  }

 private:
  static constexpr std::uint32_t kOrders[] = {1};

  std::uint64_t rows_;
  RowId pad_row_;
  std::optional<TokenId> image_;
  std::vector<TokenId> media_;  // with the image's
};

}  // namespace

Result<std::shared_ptr<const Addressing>> make_unigram(const UnigramConfig& config) {
  if (config.vocab_size < 1) {
    return make_error(ErrorCode::kUsage, "vocab_size {} is no configuration of a unigram table: it must be at least 1",
                      config.vocab_size);
  }
  if (config.pad_token_id < 0 || config.pad_token_id >= config.vocab_size) {
    return make_error(ErrorCode::kUsage, "pad_token_id {} is not one of the {} tokens of a unigram table",
                      config.pad_token_id, config.vocab_size);
  }
  return {std::make_shared<Unigram>(config)};
}

UnigramConfig released_unigram() { return {.vocab_size = 262'144, .image_token_id = {}, .other_media_token_ids = {}}; }

}  // namespace rowtide
