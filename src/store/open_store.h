// Opening a store over a block source of the caller's: for tests that inject faults and for benchmarks that force
// a way of reading.
#pragma once

#include <memory>

#include "io/block_source.h"
#include "rowtide/store.h"

namespace rowtide {

/// Store::open() with it. `source` holds the table's files in the order of RowMap::paths().
Result<std::shared_ptr<Store>> open_store(Table table, std::unique_ptr<io::BlockSource> source,
                                          const StoreOptions& options);

}  // namespace rowtide
