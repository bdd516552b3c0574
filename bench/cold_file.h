// Making a file cold and measuring how cold it is.
#pragma once

#include <cstdint>
#include <string>

#include "rowtide/result.h"

namespace rowtide::bench {

/// Bytes of [begin, end) of the file that lie in the page cache, by mincore; `end` beyond the file's length is its
/// length. The file must be the caller's own or writable: of others' files the kernel tells nothing.
Result<std::uint64_t> resident_bytes(const std::string& path, std::uint64_t begin = 0, std::uint64_t end = UINT64_MAX);

/// Evicts the file from the page cache; then under 1 % of it may be resident, else kResource (somebody maps or reads
/// it). Gives back the resident share.
Result<double> make_cold(const std::string& path);

}  // namespace rowtide::bench
