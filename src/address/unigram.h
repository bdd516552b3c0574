// Addressing of tables with one row for each token id, as the per-layer embeddings of Gemma's E-models: order 1, one
// head, no history.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "rowtide/addressing.h"
#include "rowtide/result.h"

namespace rowtide {

struct UnigramConfig {
  std::int64_t vocab_size;  // of the table, which may be smaller than the tokenizer's
  std::optional<TokenId> image_token_id;
};

/// The addressing for `config`. A token id outside the vocabulary reads row 0, as in the published code. kUsage for a
/// vocab_size below 1.
Result<std::shared_ptr<const Addressing>> make_unigram(const UnigramConfig& config);

/// The configuration of the released Gemma 3n and Gemma 4 E-models.
UnigramConfig released_unigram();

}  // namespace rowtide
