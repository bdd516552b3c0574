// Addressing: from token ids to row ids. Pure arithmetic, no I/O, no state beyond the last few token
// ids of a sequence, which the caller keeps in a History.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace rowtide {

using TokenId = std::int64_t;
using RowId = std::uint64_t;

/// The last token ids of one sequence, oldest first. Fewer ids than Addressing::history_tokens()
/// means that the sequence starts there. As many stay as many.
using History = std::vector<TokenId>;

/// One model's addressing. Immutable after construction; every method may be called by any number of
/// threads at once.
class Addressing {
 public:
  virtual ~Addressing() = default;

  /// Family name as on the command line: qwen_ple, deepseek_engram, engram_demo, longcat or unigram.
  virtual std::string_view family() const = 0;
  /// The n-gram orders, ascending: {2, 3}; {1} where each token id has a row. Rows of one token lie order by
  /// order, head by head.
  virtual std::span<const std::uint32_t> orders() const = 0;
  virtual std::uint32_t heads_per_order() const = 0;
  /// Rows that can be addressed: every id given back is below this.
  virtual std::uint64_t row_count() const = 0;
  /// How many ids of history the highest order needs (n - 1).
  virtual std::size_t history_tokens() const = 0;
  /// The history before the first token of a sequence: history_tokens() ids that say that nothing came before.
  virtual History start() const = 0;
  /// The token id to stand in for positions that an image occupies, if the model names one.
  virtual std::optional<TokenId> image_token_id() const = 0;

  std::size_t rows_per_token() const { return orders().size() * heads_per_order(); }

  /// Row ids of `tokens`, which follow `history`; then `history` is what to carry to the next chunk.
  /// Any split of a sequence into chunks, empty ones included, gives the same ids.
  /// ids.size() must be tokens.size() * rows_per_token() (asserted). Token ids outside the vocabulary give
  /// the rows that docs/formats.md says for the family. `tokens` must not lie in `history`. Cost: about 2 ns
  /// a row id.
  virtual void rows(std::span<const TokenId> tokens, History& history, std::span<RowId> ids) const = 0;
};

}  // namespace rowtide
