// What the page cache holds of a file, and taking it out: how a measurement knows that it is cold.
#pragma once

#include <cstdint>
#include <string>

#include "rowtide/result.h"

namespace rowtide::io {

/// Bytes of the pages with bytes of [begin, end) that lie in the page cache, by mincore; `end` beyond the file's length
/// is its length. The file must be the caller's own or writable: of others' files the kernel tells nothing. Errors:
/// kIo.
Result<std::uint64_t> resident_bytes(const std::string& path, std::uint64_t begin = 0, std::uint64_t end = UINT64_MAX);

/// Evicts [begin, end) from the page cache, and the whole file where that is not enough; then under 1 % of [begin, end)
/// may be resident, else kResource (somebody maps or locks it, or its file system keeps files in memory). Gives back
/// the resident share of its pages. Errors: also kIo.
Result<double> make_cold(const std::string& path, std::uint64_t begin = 0, std::uint64_t end = UINT64_MAX);

}  // namespace rowtide::io
