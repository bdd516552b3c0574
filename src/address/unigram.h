// Addressing of tables with one row for each token id, as the per-layer embeddings of Gemma's E-models: order 1, one
// head, no history.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "rowtide/addressing.h"
#include "rowtide/result.h"

namespace rowtide {

struct UnigramConfig {
  std::int64_t vocab_size;  // of the table, which may be smaller than the tokenizer's
  std::optional<TokenId> image_token_id;
  std::vector<TokenId> other_media_token_ids;  // of positions that sound or video occupies
  TokenId pad_token_id = 0;                    // whose row positions of images, sound and video read
};

/// The addressing for `config`. A token id outside the vocabulary reads row 0, as in the published code. kUsage for a
/// vocab_size below 1 and for a pad_token_id outside it.
Result<std::shared_ptr<const Addressing>> make_unigram(const UnigramConfig& config);

/// The configuration of the released Gemma 3n and Gemma 4 E-models.
UnigramConfig released_unigram();

}  // namespace rowtide
