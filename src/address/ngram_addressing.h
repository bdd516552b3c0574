// What the families that hash n-grams share: the window of the last tokens as they are hashed, and the walk along a
// sequence with its history.
#pragma once

#include <algorithm>
#include <array>
#include <cassert>
#include <optional>
#include <utility>

#include "rowtide/addressing.h"

namespace rowtide {

constexpr std::uint32_t kMaxNgramSize = 8;
constexpr std::uint32_t kMaxHeadsPerOrder = 64;

/// Token ids are hashed as unsigned words: signed arithmetic wraps to the same bits.
using Word = std::uint64_t;

/// [s] is the token s positions back, as it is hashed.
using NgramWindow = std::array<Word, kMaxNgramSize>;

/// Makes the current token the one before.
inline void shift(NgramWindow& window) { std::copy_backward(window.begin(), window.end() - 1, window.end()); }

/// Addressing over the orders 2..N by a family's rules, a class with
///
///     static constexpr std::string_view kFamily;
///     static constexpr bool kFullHistory;               whether a short history is filled up in front with start_id()
///     TokenId start_id() const;                         in a history: nothing came before
///     std::optional<TokenId> image_token_id() const;
///     std::uint64_t row_count() const;
///     Word fill() const;                                what is hashed where there is no token
///     void enter(TokenId, NgramWindow&) const;          puts a token into [0]
///     RowId* hash(const NgramWindow&, RowId*) const;    one token's rows; returns the end of what was written
///     void leave(NgramWindow&) const;                   ready for the next token
template <class Rules>
class NgramAddressing final : public Addressing {
 public:
  NgramAddressing(std::uint32_t ngram_size, std::uint32_t heads_per_order, Rules rules)
      : rules_(std::move(rules)), heads_per_order_(heads_per_order) {
    assert(ngram_size >= 2 && ngram_size <= kMaxNgramSize);
    for (std::uint32_t order = 2; order <= ngram_size; ++order) orders_.push_back(order);
  }

  std::string_view family() const override { return Rules::kFamily; }
  std::span<const std::uint32_t> orders() const override { return orders_; }
  std::uint32_t heads_per_order() const override { return heads_per_order_; }
  std::uint64_t row_count() const override { return rules_.row_count(); }
  std::size_t history_tokens() const override { return orders_.size(); }
  History start() const override { return History(history_tokens(), rules_.start_id()); }
  std::optional<TokenId> image_token_id() const override { return rules_.image_token_id(); }

  void rows(std::span<const TokenId> tokens, History& history, std::span<RowId> ids) const override {
    assert(ids.size() == tokens.size() * rows_per_token());
    trim(history);
    if (Rules::kFullHistory) {
      history.insert(history.begin(), history_tokens() - history.size(), rules_.start_id());
    }
    NgramWindow window;
    window.fill(rules_.fill());
    for (const TokenId token : history) {
      rules_.enter(token, window);
      rules_.leave(window);
    }
    RowId* out = ids.data();
    for (const TokenId token : tokens) {
      rules_.enter(token, window);
      out = rules_.hash(window, out);
      rules_.leave(window);
    }
    const std::size_t fresh = std::min(tokens.size(), history_tokens());
    history.insert(history.end(), tokens.end() - static_cast<std::ptrdiff_t>(fresh), tokens.end());
    trim(history);
  }

 private:
  // Older ids do not count.
  void trim(History& history) const {
    const std::size_t kept = std::min(history.size(), history_tokens());
    history.erase(history.begin(), history.end() - static_cast<std::ptrdiff_t>(kept));
  }

  Rules rules_;
  std::uint32_t heads_per_order_;
  std::vector<std::uint32_t> orders_;
};

}  // namespace rowtide
