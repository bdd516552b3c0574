// A table of random bytes in real files, and the reference that says what its rows are: one seek and one
// read a row, nothing clever.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "rowtide/store.h"
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
  /// Components behind the first, which holds the rest of a row.
  struct Part {
    std::uint64_t row_bytes;
    std::vector<std::uint64_t> extent_rows;
  };
  std::vector<Part> parts = {};
  float scale = 1;
};

namespace random_table {

using Content = std::vector<std::byte>;

/// Adds extent number i to file number i of the table, behind what other components have there.
inline void add_component(const TempDir& dir, const RandomTableShape& shape, const RandomTableShape::Part& part,
                          std::mt19937_64& random, std::vector<Content>& files, Table& table) {
  const std::string name = table.components.empty() ? "values" : "scales";
  Component& component = table.components.emplace_back(Component{name, part.row_bytes, {}});
  std::uint64_t first_row = 0;
  for (const std::uint64_t rows : part.extent_rows) {
    const std::size_t number = component.extents.size();
    if (files.size() <= number) files.emplace_back();
    Content& content = files[number];
    const std::uint64_t offset = content.empty() ? shape.offset : content.size();
    content.resize(offset + rows * part.row_bytes + shape.bytes_behind);
    std::generate(content.begin() + static_cast<std::ptrdiff_t>(offset), content.end(),
                  [&] { return static_cast<std::byte>(random()); });
    component.extents.push_back({dir.file("extent-" + std::to_string(number)), offset, first_row, rows});
    first_row += rows;
  }
  table.rows = first_row;
}

}  // namespace random_table

/// The extents of a component each in a file of its own; components share the files.
inline Table make_random_table(const TempDir& dir, const RandomTableShape& shape, unsigned seed) {
  std::mt19937_64 random(seed);
  Table table;
  table.name = "table.weight";
  table.row_values = shape.row_values;
  table.row_bytes = row_bytes(shape.format, shape.row_values).value();
  table.row_format = shape.format;
  table.scale = shape.scale;
  std::vector<random_table::Content> files;
  std::uint64_t first_bytes = table.row_bytes;
  for (const auto& part : shape.parts) first_bytes -= part.row_bytes;
  random_table::add_component(dir, shape, {first_bytes, shape.extent_rows}, random, files, table);
  for (const auto& part : shape.parts) random_table::add_component(dir, shape, part, random, files, table);
  for (std::size_t i = 0; i < files.size(); ++i) write_file(dir.file("extent-" + std::to_string(i)), files[i]);
  return table;
}

/// The raw rows, in the order asked.
inline std::vector<std::byte> reference_rows(const Table& table, std::span<const RowId> ids) {
  std::vector<std::byte> out(ids.size() * table.row_bytes);
  std::uint64_t part_at = 0;
  for (const Component& component : table.components) {
    std::vector<std::ifstream> files;
    for (const Extent& extent : component.extents) files.emplace_back(extent.path, std::ios::binary);
    for (std::size_t i = 0; i < ids.size(); ++i) {
      std::size_t at = 0;
      while (ids[i] >= component.extents[at].first_row + component.extents[at].rows) ++at;
      const Extent& extent = component.extents[at];
      files[at].seekg(static_cast<std::streamoff>(extent.offset + (ids[i] - extent.first_row) * component.row_bytes));
      if (!files[at].read(reinterpret_cast<char*>(out.data() + i * table.row_bytes + part_at),
                          static_cast<std::streamsize>(component.row_bytes))) {
        throw std::runtime_error("the reference cannot read row " + std::to_string(ids[i]));
      }
    }
    part_at += component.row_bytes;
  }
  return out;
}

/// Reads the batch raw, as f32 and as bf16, and compares each with the reference.
inline ::testing::AssertionResult reads_reference_rows(Reader& reader, const Table& table, std::span<const RowId> ids) {
  const auto wrong = [&](const char* form, const Result<void>& read) {
    return ::testing::AssertionFailure() << form << ": " << (read ? "wrong bytes" : read.error().message);
  };
  const auto rows = reference_rows(table, ids);
  std::vector<std::byte> as_raw(rows.size(), std::byte{0xAA});
  if (const auto read = reader.read(ids, raw(as_raw)); !read || as_raw != rows) return wrong("raw", read);
  std::vector<float> as_f32(ids.size() * table.row_values), want_f32(as_f32.size());
  decode_f32(table.coding(), rows.data(), ids.size(), want_f32.data());
  if (const auto read = reader.read(ids, f32(as_f32));
      !read || std::memcmp(as_f32.data(), want_f32.data(), as_f32.size() * sizeof(float)) != 0) {
    return wrong("f32", read);
  }
  std::vector<std::uint16_t> as_bf16(as_f32.size()), want_bf16(as_f32.size());
  decode_bf16(table.coding(), rows.data(), ids.size(), want_bf16.data());
  if (const auto read = reader.read(ids, bf16(as_bf16)); !read || as_bf16 != want_bf16) return wrong("bf16", read);
  return ::testing::AssertionSuccess();
}

}  // namespace rowtide
