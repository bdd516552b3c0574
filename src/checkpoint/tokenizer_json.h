// The vocabulary in a Hugging Face tokenizer.json: the piece of each token id, added tokens included.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "io/file.h"
#include "rowtide/result.h"

namespace rowtide::checkpoint {

/// More token ids than any tokenizer has.
constexpr std::uint64_t kTokenizerIdsMax = std::uint64_t{1} << 20;

/// Pieces by token id. Errors name the file, and piece or id: kMalformed for what is no tokenizer.json, an id without a
/// piece, or with two; kUnsupported for a tokenizer that is not a byte-level BPE (model.type "BPE" without
/// byte_fallback, decoder.type "ByteLevel"), for ids of 2^20 and above, and for what passes a limit of json_events.h.
Result<std::vector<std::string>> read_tokenizer_pieces(const io::File& file);

}  // namespace rowtide::checkpoint
