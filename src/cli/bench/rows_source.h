// The file that is measured: a checkpoint's table, a bare file of rows, or one made for the purpose.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "cli/bench/rows_options.h"
#include "rowtide/table.h"
#include "store/batch_plan.h"

namespace rowtide::cli {

/// A file of rows that follow from their ids. Nobody sees it, and it is gone with this.
class SyntheticRows;

struct BenchSource {
  Table table;
  RowMap map;
  std::uint32_t block_bytes = 4096;               // what is read from the device at once
  std::uint64_t page_bytes = 4096;                // of the page cache: the kernel's
  std::string device;                             // the block device the first file lies on
  std::optional<std::uint64_t> read_ahead_bytes;  // what the kernel reads around a fault there
  std::shared_ptr<const SyntheticRows> synthetic;

  const std::vector<std::string>& paths() const { return map.paths(); }
  /// [begin, end) of file `file` that holds rows.
  struct Range {
    std::uint64_t begin, end;
  };
  Range range(std::uint32_t file) const;
};

/// Opens, or makes, what the options name. Throws a Failure.
BenchSource open_bench_source(const BenchRowsOptions& options);

/// Checks rows that a method delivered: all of them where they follow from their ids, else 64 of them, by reading them
/// again. Throws a Failure that names the method and the first row that is wrong.
void check_bench_rows(const BenchSource& source, std::string_view method, std::span<const RowId> ids,
                      std::span<const std::byte> rows);

}  // namespace rowtide::cli
