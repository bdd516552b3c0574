#include <utility>

#include "base/checked.h"
#include "base/error.h"
#include "base/printable.h"
#include "io/file.h"
#include "rowtide/table.h"

namespace rowtide {

namespace {

Result<Table> make_table(std::string name, std::string path, std::uint64_t offset, std::uint64_t rows,
                         std::uint64_t row_values, RowFormat format, std::uint32_t bundle_rows) {
  const auto bytes_each = row_bytes(format, row_values);
  if (!bytes_each || *bytes_each == 0 || rows == 0) {
    return make_error(ErrorCode::kUsage, "{}: tensor '{}': {} rows of {} {} values are no table", path, printable(name),
                      rows, row_values, row_format_name(format));
  }
  if (bundle_rows == 0 || bundle_rows > kBundleRowsMax) {
    return make_error(ErrorCode::kUsage, "{}: tensor '{}': bundles of {} rows; 1 to {} can be served", path,
                      printable(name), bundle_rows, kBundleRowsMax);
  }
  auto file = io::open_file(path);
  if (!file) return file.error();
  const auto bytes = checked_mul(rows, *bytes_each);
  const auto end = bytes ? checked_add(offset, *bytes) : std::nullopt;
  if (!end || *end > (*file)->bytes()) {
    return make_error(ErrorCode::kMalformed,
                      "{}: tensor '{}': {} rows of {} bytes from offset {} end outside the file's {} bytes", path,
                      printable(name), rows, *bytes_each, offset, (*file)->bytes());
  }
  Table table;
  table.name = std::move(name);
  table.rows = rows;
  table.row_values = row_values;
  table.row_bytes = *bytes_each;
  table.row_format = format;
  table.bundle_rows = bundle_rows;
  table.components = {{"values", *bytes_each, {{std::move(path), offset, 0, rows}}}};
  return table;
}

}  // namespace

Result<Table> table_at(std::string name, std::string path, std::uint64_t offset, std::uint64_t rows,
                       std::uint64_t row_values, RowFormat format, std::uint32_t bundle_rows) {
  return without_throwing(
      [&] { return make_table(std::move(name), std::move(path), offset, rows, row_values, format, bundle_rows); });
}

}  // namespace rowtide
