// Vocabulary compression as addressing sees it: tokenizer ids to compressed ids. How a map is made from a tokenizer:
// vocab_compression.h.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "rowtide/addressing.h"
#include "rowtide/result.h"

namespace rowtide {

/// [id] is the compressed id of tokenizer id `id`. Null is the identity: ids are compressed already.
using TokenMap = std::shared_ptr<const std::vector<std::int32_t>>;

/// Refuses a map that does not number its compressed ids 0, 1, 2... in the order of their first use (kMalformed), or
/// has not `compressed_vocab_size` of them (kMismatch, naming both counts): multipliers follow from that count, so the
/// map of another tokenizer would address wrong rows without any other symptom. The identity always serves.
Result<void> check_token_map(const TokenMap& map, std::int64_t compressed_vocab_size);

}  // namespace rowtide
