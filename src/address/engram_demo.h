// Addressing of the Engram paper's reference code: XOR mixes of compressed ids, orders 2..N. No token is special; the
// pad id is hashed where nothing came before.
#pragma once

#include <cstdint>
#include <memory>

#include "address/engram.h"

namespace rowtide {

/// The addressing of one layer's table, with that layer's part of derive_engram(). Token ids and histories are
/// tokenizer ids (compressed ids with the identity map). Negative ids are hashed as they are, ids beyond the map read
/// as its last one. Refuses what check_engram_map() does.
Result<std::shared_ptr<const Addressing>> make_engram_demo(const EngramConfig& config, const XorConstants& constants,
                                                           TokenMap map);

/// The configuration that the reference code comes with, for the tokenizer of DeepSeek-V3.
EngramConfig released_engram_demo();

}  // namespace rowtide
