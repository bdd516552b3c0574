// A table: one array of fixed-width encoded rows that belongs to one layer of one model, and where
// its bytes lie. A description; it holds no file open.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "rowtide/addressing.h"
#include "rowtide/result.h"
#include "rowtide/row_format.h"

namespace rowtide {

/// A run of rows in one file: of row first_row + i, the component's part starts at offset + i * Component::row_bytes.
struct Extent {
  std::string path;
  std::uint64_t offset = 0;  // bytes from the start of the file
  std::uint64_t first_row = 0;
  std::uint64_t rows = 0;
  std::uint64_t header_bytes = 0;  // what stands before the tensor data of that file; 0: not known
  std::uint64_t file_stamp = 0;    // tells the file from what may stand in its place later; 0: not known
};

/// A part of every row, and where those parts lie. Most tables have one, the whole row; checkpoints that keep the
/// scales of a row in a tensor of their own have two.
struct Component {
  std::string name;             // "values" or "scales"
  std::uint64_t row_bytes = 0;  // of each row
  std::vector<Extent> extents;  // ascending by first_row; together they cover [0, Table::rows)
};

inline constexpr std::uint32_t kBundleRowsMax = 64;
inline constexpr std::size_t kComponentsMax = 4;

struct Table {
  std::string name;         // the tensor's name in the checkpoint
  std::uint32_t layer = 0;  // 0-based decoder layer that reads it
  std::uint64_t rows = 0;
  std::uint64_t row_values = 0;
  std::uint64_t row_bytes = 0;  // of a raw row: its parts, one after the other in the order of the components
  RowFormat row_format = RowFormat::kF32;
  float scale = 1;                               // a factor of every value, for the row formats that have one
  std::uint32_t bundle_rows = 1;                 // rows of one n-gram, asked for one after the other; 1: not known
  std::vector<Component> components;             // 1 to kComponentsMax
  std::shared_ptr<const Addressing> addressing;  // empty where only row ids are known

  std::uint64_t bytes() const { return rows * row_bytes; }
  RowCoding coding() const { return {row_format, row_values, scale}; }
};

/// What tells this table's content from another's of the same shape: 32 hex digits over shape, row
/// format, scale, addressing, the headers of its files and at most 64 blocks of 4 KiB sampled from each component
/// (src/table/identity.h has it byte by byte). Reads those headers and blocks. Errors: as of opening and
/// reading the files; kMalformed for a file that has become too short.
Result<std::string> table_identity(const Table& table);

/// A table at a known place in one file, its rows whole, for callers that bring their own row ids (an engine that has
/// already parsed the checkpoint); its scale is 1. Checks the arithmetic against the file's length, reads nothing.
/// Errors: as of opening the file; kUsage for a row that `format` cannot hold, for no rows at all or for
/// bundles of none or of more than kBundleRowsMax rows; kMalformed for rows outside the file.
Result<Table> table_at(std::string name, std::string path, std::uint64_t offset, std::uint64_t rows,
                       std::uint64_t row_values, RowFormat format, std::uint32_t bundle_rows = 1);

}  // namespace rowtide
