// rowtide inspect: what is in a checkpoint.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <span>

#include "cli/command.h"
#include "cli/json_output.h"
#include "cli/text_table.h"
#include "rowtide/checkpoint.h"

namespace rowtide::cli {
namespace {

/// A table with what is told of it. The addressing's figures are 0 where only row ids are known.
struct Inspected {
  const Table& table;
  std::string identity;
  std::vector<std::uint32_t> orders;
  std::uint64_t heads_per_order = 0;
  std::uint64_t rows_per_token = 0;

  explicit Inspected(const Table& inspected) : table(inspected), identity(value_of(table_identity(inspected))) {
    if (!table.addressing) return;
    auto known = table.addressing->orders();
    orders.assign(known.begin(), known.end());
    heads_per_order = table.addressing->heads_per_order();
    rows_per_token = table.addressing->rows_per_token();
  }

  std::uint64_t bytes_per_token() const { return rows_per_token * table.row_bytes; }
};

Json to_json(const Inspected& inspected) {
  const Table& table = inspected.table;
  Json extents = Json::array();
  for (const Component& component : table.components) {
    for (const Extent& extent : component.extents) {
      extents.push_back({{"component", component.name},
                         {"row_bytes", component.row_bytes},
                         {"path", extent.path},
                         {"offset", extent.offset},
                         {"first_row", extent.first_row},
                         {"rows", extent.rows}});
    }
  }
  return {{"name", table.name},
          {"layer", table.layer},
          {"rows", table.rows},
          {"row_bytes", table.row_bytes},
          {"row_format", row_format_name(table.row_format)},
          {"row_values", table.row_values},
          {"bytes", table.bytes()},
          {"orders", inspected.orders},
          {"heads_per_order", inspected.heads_per_order},
          {"rows_per_token", inspected.rows_per_token},
          {"bytes_per_token", inspected.bytes_per_token()},
          {"extents", std::move(extents)},
          {"identity", inspected.identity}};
}

Json to_json(const Checkpoint& checkpoint, const std::vector<Inspected>& tables) {
  Json files = Json::array();
  for (const CheckpointFile& file : checkpoint.files()) {
    files.push_back({{"path", file.path}, {"bytes", file.bytes}});
  }
  Json listed = Json::array();
  for (const Inspected& table : tables) listed.push_back(to_json(table));
  return {{"path", checkpoint.path()},
          {"format", checkpoint.format()},
          {"family", checkpoint.family().empty() ? Json(nullptr) : Json(checkpoint.family())},
          {"model_type", checkpoint.model_type()},
          {"files", std::move(files)},
          {"tables", std::move(listed)},
          {"bytes_total", checkpoint.bytes_total()},
          {"bytes_table", checkpoint.bytes_table()},
          {"bytes_rest", checkpoint.bytes_rest()}};
}

std::string percent(std::uint64_t part, std::uint64_t whole) {
  return fmt::format("{:.1f} %", whole == 0 ? 0.0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole));
}

std::string addressing_text(const Checkpoint& checkpoint, const Inspected& inspected) {
  if (inspected.rows_per_token == 0) {
    return checkpoint.family() + ": token ids must be compressed, but no tokenizer.json lies beside the model";
  }
  if (inspected.orders.back() == 1) return checkpoint.family() + ": the row of the token id";
  const auto lower = std::span(inspected.orders).first(inspected.orders.size() - 1);
  return fmt::format("{}: n-grams of {}{}{} tokens, {} heads each", checkpoint.family(), fmt::join(lower, ", "),
                     lower.empty() ? "" : " and ", inspected.orders.back(), inspected.heads_per_order);
}

// Lists of more items than the first number show as many as the second.
constexpr std::size_t kListedMost = 8;
constexpr std::size_t kListed = 3;

template <class Item>
std::span<const Item> listed(const std::vector<Item>& items) {
  return std::span(items).first(items.size() > kListedMost ? kListed : items.size());
}

void print_table(const Checkpoint& checkpoint, const Inspected& inspected) {
  const Table& table = inspected.table;
  std::vector<std::vector<std::string>> lines = {
      {"decoder layer", fmt::format("{} (counted from 0)", table.layer)},
      {"rows", fmt::format("{}, each {} {} values in {} bytes", grouped(table.rows), table.row_values,
                           row_format_name(table.row_format), table.row_bytes)},
      {"size", fmt::format("{}, {} of the checkpoint", size_text(table.bytes()),
                           percent(table.bytes(), checkpoint.bytes_total()))},
      {"identity", inspected.identity}};
  lines.push_back({"addressing", addressing_text(checkpoint, inspected)});
  if (inspected.rows_per_token != 0) {
    lines.push_back({"a token reads",
                     fmt::format("{} rows, {} bytes", inspected.rows_per_token, grouped(inspected.bytes_per_token()))});
  }
  for (const Component& component : table.components) {
    const std::string what = table.components.size() == 1 ? "lies in" : component.name + " lie in";
    for (const Extent& extent : listed(component.extents)) {
      lines.push_back({what, fmt::format("{} from byte {}: rows {} to {}", extent.path, grouped(extent.offset),
                                         grouped(extent.first_row), grouped(extent.first_row + extent.rows - 1))});
    }
    if (component.extents.size() > kListedMost) {
      lines.push_back({"", fmt::format("and {} more places (--json lists them)", component.extents.size() - kListed)});
    }
  }
  fmt::print("\nTable {}\n{}", table.name, columns(lines, 2));
}

void print(const Checkpoint& checkpoint, const std::vector<Inspected>& tables) {
  fmt::print("{}\n", checkpoint.path());
  std::vector<std::vector<std::string>> lines = {{"format", checkpoint.format()},
                                                 {"model type", checkpoint.model_type()},
                                                 {"size", size_text(checkpoint.bytes_total())}};
  if (!tables.empty()) {
    lines.push_back({"tables", size_text(checkpoint.bytes_table())});
    lines.push_back({"the rest", size_text(checkpoint.bytes_rest())});
  }
  const std::size_t files = checkpoint.files().size();
  for (const CheckpointFile& file : listed(checkpoint.files())) {
    if (files > 1) lines.push_back({"file", fmt::format("{}, {}", file.path, size_text(file.bytes))});
  }
  if (files > kListedMost) lines.push_back({"", fmt::format("and {} more files (--json lists them)", files - kListed)});
  fmt::print("{}", columns(lines, 2));
  for (const Inspected& table : tables) print_table(checkpoint, table);
  if (tables.empty()) fmt::print("\nNo conditional-memory table: there is nothing in this checkpoint to serve.\n");
}

}  // namespace

ExitCode run_inspect(const Arguments& arguments) {
  std::string path;
  bool json = false;
  ArgumentParser parser(
      "rowtide inspect",
      "Says what is in a checkpoint and which conditional-memory tables it holds. Reads headers, and at most 64\n"
      "blocks of a table for its identity.",
      "  rowtide inspect models/tidepool.gguf\n"
      "  rowtide inspect --json model-00001-of-00004.gguf\n"
      "  rowtide inspect ~/models/Qwen3.8-Flash-Next-FP8\n",
      json);
  parser.required_path(path, "a GGUF or safetensors file, an index, a checkpoint's folder or a hub's snapshot");
  if (!parser.parse(arguments)) return kExitDone;

  Checkpoint checkpoint = opened(Checkpoint::open(path));
  std::vector<Inspected> tables;
  for (const Table& table : checkpoint.tables()) tables.emplace_back(table);
  if (json) {
    print_json(to_json(checkpoint, tables));
  } else {
    print(checkpoint, tables);
  }
  return kExitDone;
}

}  // namespace rowtide::cli
