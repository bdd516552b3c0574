#include "cli/model_config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <span>

#include "address/deepseek_engram.h"
#include "address/engram_demo.h"
#include "address/longcat.h"
#include "address/qwen_ple.h"
#include "address/unigram.h"
#include "base/nearest.h"
#include "cli/failure.h"
#include "io/file.h"
#include "rowtide/checkpoint.h"
#include "table/token_map_file.h"

namespace rowtide::cli {
namespace {

AddressedTable qwen_table(const QwenPleConfig& config, const QwenPleConstants& constants, std::uint32_t layer) {
  return {fmt::format("model.language_model.layers.{}.ple.ple_embedding.ngram_embedding", layer), layer,
          make_qwen_ple(config, constants)};
}

std::vector<AddressedTable> released_qwen_tables(const TokenMap&) {
  QwenPleConfig config = released_qwen_ple();
  return {qwen_table(config, value_of(derive_qwen_ple(config)), 1)};
}

using MakeEngram = Result<std::shared_ptr<const Addressing>> (*)(const EngramConfig&, const XorConstants&, TokenMap);

std::vector<AddressedTable> engram_tables(const EngramConfig& config, MakeEngram make, const TokenMap& map,
                                          std::string_view tensor) {
  std::vector<AddressedTable> tables;
  for (const XorConstants& constants : value_of(derive_engram(config))) {
    std::uint32_t layer = config.layer_ids[tables.size()];
    tables.push_back(
        {fmt::format("layers.{}.engram.{}", layer, tensor), layer, value_of(make(config, constants, map))});
  }
  return tables;
}

std::vector<AddressedTable> released_deepseek_tables(const TokenMap& map) {
  return engram_tables(released_deepseek_engram(), make_deepseek_engram, map, "embed");
}

std::vector<AddressedTable> released_demo_tables(const TokenMap& map) {
  return engram_tables(released_engram_demo(), make_engram_demo, map, "multi_head_embedding.embedding");
}

std::vector<AddressedTable> released_longcat_tables(const TokenMap&) {
  LongcatConfig config = released_longcat();
  return {{"model.ngram_embeddings", 0, make_longcat(config, value_of(derive_longcat(config)))}};
}

std::vector<AddressedTable> released_unigram_tables(const TokenMap&) {
  return {{"model.language_model.embed_tokens_per_layer", 0, value_of(make_unigram(released_unigram()))}};
}

struct Family {
  std::string_view name;
  bool compresses;  // the vocabulary: needs a token map
  std::vector<AddressedTable> (*tables)(const TokenMap& map);
};

constexpr Family kFamilies[] = {{"qwen_ple", false, released_qwen_tables},
                                {"deepseek_engram", true, released_deepseek_tables},
                                {"engram_demo", true, released_demo_tables},
                                {"longcat", false, released_longcat_tables},
                                {"unigram", false, released_unigram_tables}};

}  // namespace

std::vector<Table> tables_of_checkpoint(const std::string& path, const std::string& token_map) {
  Checkpoint checkpoint = opened(Checkpoint::open(path, {.token_map = token_map}));
  if (!checkpoint.tables().empty()) return checkpoint.tables();
  throw Failure(kExitRefused, "not_found",
                fmt::format("{}: holds no conditional-memory table, so its tokens have no rows", path));
}

void check_addressed(const std::string& path, const std::shared_ptr<const Addressing>& addressing) {
  if (addressing) return;
  throw Failure(kExitRefused, "not_found",
                fmt::format("{}: its model hashes compressed ids and has no tokenizer.json beside it; give --token-map "
                            "with that file, or identity if the token ids are compressed already",
                            path));
}

void check_token_map_belongs(const std::optional<std::string>& token_map, const Addressing& addressing) {
  const std::string_view name = addressing.family();
  const bool compresses =
      std::ranges::any_of(kFamilies, [&](const Family& family) { return family.name == name && family.compresses; });
  if (!token_map || compresses) return;
  throw usage_failure("--token-map: {} hashes the tokenizer's own ids, there is no vocabulary compression", name);
}

std::vector<AddressedTable> tables_of_family(const std::string& name, const std::string& token_map) {
  const auto family = std::ranges::find(kFamilies, name, &Family::name);
  if (family == std::end(kFamilies)) {
    std::vector<std::string> names;
    for (const Family& known : kFamilies) names.emplace_back(known.name);
    throw usage_failure("--family: unknown family '{}'{}; this version knows {}", name, suggestion(name, names),
                        fmt::join(names, ", "));
  }
  if (!family->compresses) return family->tables(nullptr);
  if (token_map.empty()) {
    throw usage_failure(
        "--family: {} hashes compressed ids; give --token-map with the model's tokenizer.json or a file of int32 "
        "compressed ids, or --token-map identity if the token ids are compressed already",
        name);
  }
  return family->tables(opened(read_token_map(token_map, io::open_file)));
}

std::vector<AddressedTable> tables_of_config(const std::string& path, std::string_view text,
                                             const std::string& token_map) {
  const auto bytes = std::as_bytes(std::span(text));
  const auto file = io::memory_file(path, {bytes.begin(), bytes.end()});
  const auto config = value_of(checkpoint::ModelConfig::read(*file));
  const ModelFamily* const family = value_of(family_of(config));
  std::vector<AddressedTable> tables;
  if (family != nullptr) {
    tables = value_of(family->addressed_tables(config, token_map_source(token_map, path, io::open_file)));
  }
  if (tables.empty()) {
    throw Failure(
        kExitRefused, "malformed",
        fmt::format("{}: tells of no conditional-memory table, as one of the keys {} would", path, telling_keys()));
  }
  return tables;
}

}  // namespace rowtide::cli
