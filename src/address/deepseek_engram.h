// Addressing of the Engram tables of DeepSeek-V4.1: XOR mixes of compressed ids, orders 2..N. Image positions are dead:
// a dead token, and everything older than one, reads as the pad id. End-of-sequence tokens are ordinary.
#pragma once

#include <cstdint>
#include <memory>

#include "address/engram.h"

namespace rowtide {

/// The addressing of one layer's table, with that layer's part of derive_engram(). Token ids and histories are
/// tokenizer ids; with the identity map they are compressed ids, and an image is -1. Dead are -1, which also says that
/// nothing came before, image_token_id, and every id that the map does not know. Refuses what check_engram_map() does.
Result<std::shared_ptr<const Addressing>> make_deepseek_engram(const EngramConfig& config,
                                                               const XorConstants& constants, TokenMap map);

/// The configuration of the released DeepSeek-V4.1-Flash.
EngramConfig released_deepseek_engram();

}  // namespace rowtide
