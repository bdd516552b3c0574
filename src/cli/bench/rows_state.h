// Bringing rows into memory, or out of it, before they are asked for; and what tells that it worked.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "cli/bench/rows_source.h"

namespace rowtide::cli {

/// Evicts the table's files' rows and checks that they are out: the greatest share of a file that is left. Throws a
/// Failure that says who may hold them.
double evict_rows(const BenchSource& source);

/// The share of `ids` whose pages all lie in the page cache.
double cached_share(const BenchSource& source, std::span<const RowId> ids);

/// Reads the pages of `ids` into the page cache, many at once.
void cache_rows(const BenchSource& source, std::span<const RowId> ids);

/// Reads all rows into the page cache, in order. Throws a Failure if they are more than the memory that is available.
void cache_table(const BenchSource& source);

/// Throws a Failure of code `code` that begins with `what`, if `bytes` more do not fit the memory that is available to
/// this process.
void check_memory_for(const BenchSource& source, std::uint64_t bytes, std::string_view what, const char* code);

}  // namespace rowtide::cli
