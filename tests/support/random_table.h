// A table of random bytes in real files, and the reference that says what its rows are: one seek and one
// read a row, nothing clever.
#pragma once

#include <cstring>
#include <fstream>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "rowtide/table.h"
#include "support/temp_dir.h"

namespace rowtide {

inline void write_file(const std::string& path, std::span<const std::byte> content) {
  std::ofstream out(path, std::ios::binary);
  out.write(reinterpret_cast<const char*>(content.data()), static_cast<std::streamsize>(content.size()));
  if (!out.flush()) throw std::runtime_error("cannot write " + path);
}

struct RandomTableShape {
  RowFormat format = RowFormat::kIq4Nl;
  std::uint64_t row_values = 160;
  std::vector<std::uint64_t> extent_rows = {5000};
  std::uint64_t offset = 12345;       // of the first row in each file: no alignment
  std::uint64_t bytes_behind = 1111;  // after the last row
};

/// Each extent in a file of its own.
inline Table make_random_table(const TempDir& dir, const RandomTableShape& shape, unsigned seed) {
  std::mt19937_64 random(seed);
  Table table;
  table.name = "table.weight";
  table.row_values = shape.row_values;
  table.row_bytes = row_bytes(shape.format, shape.row_values).value();
  table.row_format = shape.format;
  std::vector<Extent>& extents = table.components.emplace_back(Component{"values", table.row_bytes, {}}).extents;
  for (const std::uint64_t rows : shape.extent_rows) {
    std::vector<std::byte> content(shape.offset + rows * table.row_bytes + shape.bytes_behind);
    for (std::byte& value : content) value = static_cast<std::byte>(random());
    const std::string path = dir.file("extent-" + std::to_string(extents.size()));
    write_file(path, content);
    extents.push_back({path, shape.offset, table.rows, rows});
    table.rows += rows;
  }
  return table;
}

/// The raw rows, in the order asked.
inline std::vector<std::byte> reference_rows(const Table& table, std::span<const RowId> ids) {
  std::vector<std::byte> out(ids.size() * table.row_bytes);
  std::vector<std::ifstream> files;
  for (const Extent& extent : table.components[0].extents) files.emplace_back(extent.path, std::ios::binary);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    std::size_t at = 0;
    while (ids[i] >= table.components[0].extents[at].first_row + table.components[0].extents[at].rows) ++at;
    const Extent& extent = table.components[0].extents[at];
    files[at].seekg(static_cast<std::streamoff>(extent.offset + (ids[i] - extent.first_row) * table.row_bytes));
    if (!files[at].read(reinterpret_cast<char*>(out.data() + i * table.row_bytes),
                        static_cast<std::streamsize>(table.row_bytes))) {
      throw std::runtime_error("the reference cannot read row " + std::to_string(ids[i]));
    }
  }
  return out;
}

}  // namespace rowtide
