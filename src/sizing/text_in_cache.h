// How much text the bundle cache remembers in a given memory.
#pragma once

#include <cstdint>

#include "sizing/model.h"

namespace rowtide::sizing {

/// What one bundle takes in the cache: head, row ids and rows, padded (src/cache/cached_table.h), its part of the index
/// at half load, and a ghost.
double bundle_bytes_in_cache(std::uint32_t heads, std::uint64_t row_bytes, std::uint64_t table_rows);

/// Tokens whose bundles, of all tables, fit; 0 without a table.
double tokens_in_cache(const Model& model, std::uint64_t memory_bytes);

}  // namespace rowtide::sizing
