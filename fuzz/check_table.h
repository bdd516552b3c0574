// What every user of a table relies on, checked after a parser has made one of untrusted bytes.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "rowtide/checkpoint.h"
#include "table/identity.h"

namespace rowtide {

inline void require(bool condition) {
  if (!condition) std::abort();
}

inline std::vector<std::byte> bytes_of(std::string_view text) {
  const auto* begin = reinterpret_cast<const std::byte*>(text.data());
  return {begin, begin + text.size()};
}

/// Rows inside the files, whole and in their order; row ids inside the table.
inline void check_table(const Table& table, const Checkpoint& checkpoint, const io::FileOpener& open) {
  require(table.rows > 0 && !table.components.empty() && table.components.size() <= kComponentsMax);
  std::uint64_t row_bytes = 0;
  for (const Component& component : table.components) {
    require(component.row_bytes > 0);
    row_bytes += component.row_bytes;
    std::uint64_t next = 0;
    for (const Extent& extent : component.extents) {
      std::uint64_t file_bytes = 0;
      for (const CheckpointFile& file : checkpoint.files()) {
        if (file.path == extent.path) file_bytes = file.bytes;
      }
      require(extent.first_row == next && extent.rows > 0 && extent.header_bytes <= extent.offset);
      require(extent.offset <= file_bytes && extent.rows <= (file_bytes - extent.offset) / component.row_bytes);
      next += extent.rows;
    }
    require(next == table.rows);
  }
  require(row_bytes == table.row_bytes && row_bytes == rowtide::row_bytes(table.row_format, table.row_values));
  History history = table.addressing->start();
  const std::vector<TokenId> tokens = {0, 1, 2, history.empty() ? 7 : history.back(), 3};
  std::vector<RowId> ids(tokens.size() * table.addressing->rows_per_token());
  table.addressing->rows(tokens, history, ids);
  for (const RowId id : ids) require(id < table.rows);
  require(table_identity(table, open).ok());
}

}  // namespace rowtide
