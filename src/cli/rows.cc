// rowtide rows: rows of a table, by id.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>
#include <span>

#include "cli/command.h"
#include "cli/input.h"
#include "cli/json_output.h"
#include "rowtide/checkpoint.h"
#include "rowtide/store.h"

namespace rowtide::cli {
namespace {

struct RowsOptions {
  std::string path, ids;
  std::optional<std::string> table;
  Output::Form form = Output::Form::kRaw;
  bool json = false;
};

bool read_options(const Arguments& arguments, RowsOptions& options) {
  std::string form = "raw";
  ArgumentParser parser("rowtide rows",
                        "Reads rows of a table from the checkpoint's file and prints them in the order asked.",
                        "  rowtide rows models/tidepool.gguf --ids 0,689535\n"
                        "  rowtide rows models/tidepool.gguf --ids 5 --format f32 --json\n",
                        options.json);
  parser.required_path(options.path, "a checkpoint with a table");
  parser.required("--ids", "LIST", options.ids, "row ids (required), separated by commas or spaces");
  parser.optional("--table", "NAME", options.table, "which table; may be left out where there is one");
  parser.choice("--format", {"raw", "bf16", "f32"}, form,
                "raw: the stored bytes in hex (default); bf16, f32: decoded, in JSON as hex words");
  if (!parser.parse(arguments)) return false;
  options.form = form == "f32" ? Output::Form::kF32 : form == "bf16" ? Output::Form::kBf16 : Output::Form::kRaw;
  return true;
}

Table find_table(const RowsOptions& options) {
  Checkpoint checkpoint = opened(Checkpoint::open(options.path));
  const auto& tables = checkpoint.tables();
  if (tables.empty()) {
    throw Failure(kExitRefused, "not_found", fmt::format("{}: holds no conditional-memory table", options.path));
  }
  if (!options.table && tables.size() == 1) return tables.front();
  std::vector<std::string> names;
  for (const Table& table : tables) {
    if (table.name == options.table) return table;
    names.push_back(table.name);
  }
  if (!options.table) throw usage_failure("--table: give one of {}", fmt::join(names, ", "));
  throw Failure(kExitRefused, "not_found",
                fmt::format("{}: holds no table '{}', but {}", options.path, *options.table, fmt::join(names, ", ")));
}

std::vector<RowId> row_ids(const RowsOptions& options, const Table& table) {
  std::vector<std::int64_t> given = parse_ids("--ids", options.ids);
  if (given.empty()) throw usage_failure("--ids: the list is empty");
  for (std::int64_t id : given) {
    if (id >= 0 && static_cast<std::uint64_t>(id) < table.rows) continue;
    throw Failure(
        kExitRefused, "out_of_range",
        fmt::format("{}: table {} has rows 0 to {}; there is no row {}", options.path, table.name, table.rows - 1, id));
  }
  return {given.begin(), given.end()};
}

/// The rows, one after the other: bytes, or 16-bit or 32-bit words in the machine's order.
struct Rows {
  std::vector<std::byte> bytes;
  std::size_t row_bytes;

  std::span<const std::byte> row(std::size_t i) const { return std::span(bytes).subspan(i * row_bytes, row_bytes); }
};

Rows read_rows(const Table& table, const std::vector<RowId>& ids, Output::Form form) {
  std::uint64_t value_bytes = form == Output::Form::kF32 ? sizeof(float) : sizeof(std::uint16_t);
  std::uint64_t row_bytes = form == Output::Form::kRaw ? table.row_bytes : table.row_values * value_bytes;
  Rows rows{std::vector<std::byte>(ids.size() * row_bytes), row_bytes};
  auto store = opened(Store::open(table));
  auto reader = value_of(store->reader());
  check(reader->read(ids, Output{form, rows.bytes.data(), rows.bytes.size()}));
  return rows;
}

template <class Word>
std::vector<Word> words(std::span<const std::byte> row) {
  std::vector<Word> out(row.size() / sizeof(Word));
  std::memcpy(out.data(), row.data(), out.size() * sizeof(Word));
  return out;
}

/// Raw bytes in file order; words most significant digit first.
std::string hex(std::span<const std::byte> row, Output::Form form) {
  switch (form) {
    case Output::Form::kRaw: return fmt::format("{:02x}", fmt::join(words<std::uint8_t>(row), ""));
    case Output::Form::kBf16: return fmt::format("{:04x}", fmt::join(words<std::uint16_t>(row), ""));
    case Output::Form::kF32: return fmt::format("{:08x}", fmt::join(words<std::uint32_t>(row), ""));
  }
  return "";
}

/// Raw bytes as hex, decoded values as numbers.
std::string readable(std::span<const std::byte> row, Output::Form form) {
  if (form == Output::Form::kRaw) return hex(row, form);
  std::vector<float> values;
  if (form == Output::Form::kF32) values = words<float>(row);
  if (form == Output::Form::kBf16) {
    for (std::uint32_t word : words<std::uint16_t>(row)) values.push_back(std::bit_cast<float>(word << 16));
  }
  return fmt::format("{}", fmt::join(values, " "));
}

}  // namespace

ExitCode run_rows(const Arguments& arguments) {
  RowsOptions options;
  if (!read_options(arguments, options)) return kExitDone;
  Table table = find_table(options);
  std::vector<RowId> ids = row_ids(options, table);
  Rows rows = read_rows(table, ids, options.form);

  if (!options.json) {
    for (std::size_t i = 0; i < ids.size(); ++i) fmt::print("{}: {}\n", ids[i], readable(rows.row(i), options.form));
    return kExitDone;
  }
  const char* key = options.form == Output::Form::kRaw ? "raw" : "values";
  Json listed = Json::array();
  for (std::size_t i = 0; i < ids.size(); ++i) {
    listed.push_back({{"id", ids[i]}, {key, hex(rows.row(i), options.form)}});
  }
  print_json({{"table", table.name}, {"row_format", row_format_name(table.row_format)}, {"rows", std::move(listed)}});
  return kExitDone;
}

}  // namespace rowtide::cli
