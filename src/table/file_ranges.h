// Where in its files a table lies.
#pragma once

#include <vector>

#include "io/system_memory.h"
#include "rowtide/table.h"

namespace rowtide {

/// One range an extent: component by component, ascending by row.
inline std::vector<io::FileRange> file_ranges(const Table& table) {
  std::vector<io::FileRange> ranges;
  for (const Component& component : table.components) {
    for (const Extent& extent : component.extents) {
      ranges.push_back({extent.path, extent.offset, extent.rows * component.row_bytes});
    }
  }
  return ranges;
}

}  // namespace rowtide
