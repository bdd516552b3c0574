// rowtide address: token ids to row ids.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <optional>
#include <span>

#include "cli/command.h"
#include "cli/input.h"
#include "cli/json_output.h"
#include "cli/model_config.h"

namespace rowtide::cli {
namespace {

struct AddressOptions {
  std::optional<std::string> path, family, config;  // one of them
  std::optional<std::string> tokens, tokens_file;   // one of them
  std::optional<std::string> history, token_map;
  bool json = false;
};

bool read_options(const Arguments& arguments, AddressOptions& options) {
  ArgumentParser parser("rowtide address", "Turns token ids into the row ids that each token reads.",
                        "  rowtide address models/tidepool.gguf --tokens 17,4,99\n"
                        "  rowtide address --family qwen_ple --tokens '9707 11 1879 0' --history 42,7\n"
                        "  rowtide address --family deepseek_engram --token-map tokenizer.json --tokens 0,455,671\n"
                        "  rowtide address --config config.json --tokens-file - --json < ids.txt\n",
                        options.json);
  parser.optional_path(options.path, "a checkpoint with a table");
  parser.optional("--family", "NAME", options.family,
                  "a family as released: qwen_ple, deepseek_engram, engram_demo, longcat, unigram");
  parser.optional("--config", "FILE", options.config, "a model's config.json");
  parser.optional("--tokens", "LIST", options.tokens, "token ids, separated by commas or spaces; negative ones too");
  parser.optional("--tokens-file", "FILE", options.tokens_file, "a text file of token ids; - is standard input");
  parser.optional("--history", "LIST", options.history,
                  "token ids that came before, oldest first; left out: the sequence starts here");
  parser.optional("--token-map", "FILE", options.token_map,
                  "for an Engram family: the model's tokenizer.json, int32 compressed ids, or identity");
  if (!parser.parse(arguments)) return false;

  if (options.path.has_value() + options.family.has_value() + options.config.has_value() != 1) {
    parser.fail("give one of PATH, --family and --config");
  }
  if (options.tokens.has_value() == options.tokens_file.has_value()) {
    parser.fail("give one of --tokens and --tokens-file");
  }
  return true;
}

std::vector<AddressedTable> find_tables(const AddressOptions& options) {
  const std::string token_map = options.token_map.value_or("");
  if (options.family) return tables_of_family(*options.family, token_map);
  if (options.config) return tables_of_config(*options.config, read_text(*options.config), token_map);
  std::vector<AddressedTable> tables;
  for (const Table& table : tables_of_checkpoint(*options.path, token_map)) {
    tables.push_back({table.name, table.layer, table.addressing});
  }
  return tables;
}

void print(const std::vector<TokenId>& tokens, const AddressedTable& table, std::span<const RowId> ids) {
  std::size_t per_token = table.addressing->rows_per_token();
  std::size_t per_order = table.addressing->heads_per_order();
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    fmt::print("{}:", tokens[i]);
    auto rows = ids.subspan(i * per_token, per_token);
    for (std::size_t head = 0; head < per_token; head += per_order) {
      fmt::print("{} {}", head == 0 ? "" : " |", fmt::join(rows.subspan(head, per_order), " "));
    }
    fmt::print("\n");
  }
}

Json to_json(const AddressedTable& table, std::span<const RowId> ids) {
  std::size_t per_token = table.addressing->rows_per_token();
  Json rows = Json::array();
  for (std::size_t i = 0; i < ids.size(); i += per_token) rows.push_back(ids.subspan(i, per_token));
  return {{"name", table.name}, {"layer", table.layer}, {"rows_per_token", per_token}, {"rows", std::move(rows)}};
}

}  // namespace

ExitCode run_address(const Arguments& arguments) {
  AddressOptions options;
  if (!read_options(arguments, options)) return kExitDone;
  std::vector<AddressedTable> tables = find_tables(options);
  const std::string& source = options.path ? *options.path : options.config ? *options.config : *options.family;
  for (const AddressedTable& table : tables) check_addressed(source, table.addressing);
  check_token_map_belongs(options.token_map, *tables.front().addressing);
  std::vector<TokenId> tokens = options.tokens ? parse_ids("--tokens", *options.tokens)
                                               : parse_ids("--tokens-file", read_text(*options.tokens_file));

  const History before = options.history ? parse_ids("--history", *options.history) : History();

  Json listed = Json::array();
  History history;
  for (const AddressedTable& table : tables) {
    history = before;
    std::vector<RowId> ids(tokens.size() * table.addressing->rows_per_token());
    table.addressing->rows(tokens, history, ids);
    if (options.json) {
      listed.push_back(to_json(table, ids));
    } else {
      if (tables.size() > 1) fmt::print("{}\n", table.name);
      print(tokens, table, ids);
    }
  }
  if (options.json) {
    print_json(
        {{"family", tables.front().addressing->family()}, {"tables", std::move(listed)}, {"history_after", history}});
  } else if (!history.empty()) {
    fmt::print(stderr, "the next chunk's --history: {}\n", fmt::join(history, ","));
  }
  return kExitDone;
}

}  // namespace rowtide::cli
