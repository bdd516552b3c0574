#include "cli/model_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>

#include "address/qwen_ple.h"
#include "cli/failure.h"
#include "cli/nearest.h"
#include "io/file.h"
#include "table/token_map_file.h"

namespace rowtide::cli {
namespace {

constexpr std::string_view kServed = "qwen_ple";
constexpr std::array<std::string_view, 4> kNotYetServed = {"deepseek_engram", "engram_demo", "longcat", "unigram"};

AddressedTable qwen_table(const QwenPleConfig& config, const QwenPleConstants& constants, std::uint32_t layer) {
  return {fmt::format("model.language_model.layers.{}.ple.ple_embedding.ngram_embedding", layer), layer,
          make_qwen_ple(config, constants)};
}

}  // namespace

std::vector<AddressedTable> tables_of_family(const std::string& name) {
  if (name == kServed) {
    QwenPleConfig config = released_qwen_ple();
    return {qwen_table(config, value_of(derive_qwen_ple(config)), 1)};
  }
  if (std::find(kNotYetServed.begin(), kNotYetServed.end(), name) != kNotYetServed.end()) {
    throw Failure(kExitRefused, "unsupported",
                  fmt::format("--family: the addressing of {} is not in this version; it knows {}", name, kServed));
  }
  std::vector<std::string> names(kNotYetServed.begin(), kNotYetServed.end());
  names.emplace_back(kServed);
  throw usage_failure("--family: unknown family '{}'{}; this version knows {}", name, suggestion(name, names), kServed);
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
  if (tables.empty()) throw Failure(kExitRefused, "malformed", fmt::format("{}: tells of no table with rows for tokens", path));
  return tables;
}

}  // namespace rowtide::cli
