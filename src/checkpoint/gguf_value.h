// One key-value pair of a GGUF header, read or passed over.
#pragma once

#include <cstdint>

#include "checkpoint/header_reader.h"
#include "checkpoint/metadata.h"

namespace rowtide::checkpoint {

/// The least a pair can take: no key, a value of one byte. Announced for every pair before the first.
inline constexpr std::uint64_t kMinPairBytes = 8 + 4 + 1;

/// Reads the next pair; a failure is left in `in`.
MetadataPair read_pair(HeaderReader& in);

}  // namespace rowtide::checkpoint
