// How much of a table this process holds in memory through mappings of the table's file.
#pragma once

#include <cstdint>
#include <optional>

#include "rowtide/table.h"

namespace rowtide::cli {

/// Bytes of the table in the process's resident memory: pages that lie whole within the table and are present in its
/// page tables (/proc/self/pagemap). The page cache, which belongs to the machine, does not count. Nothing where the
/// table is not mapped, or the kernel does not say.
std::optional<std::uint64_t> resident_table_bytes(const Table& table);

}  // namespace rowtide::cli
