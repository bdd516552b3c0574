// The Engram tables of DeepSeek-V4.1 in safetensors form, one for each layer L of engram_layer_ids:
//   layers.L.engram.embed.weight   F8_E4M3 [rows, row values]: codes
//   layers.L.engram.embed.scale    F8_E8M0 [rows, row values / 32]: a scale for each 32 values
// The addressing hashes compressed ids: the map comes from the model's own tokenizer.json unless another is given. A
// model without either has tables, but no addressing.
// Source: the model's published inference code (inference/engram.py) and checkpoint.
#include <array>

#include "address/deepseek_engram.h"
#include "base/error.h"
#include "table/tensor_rows.h"

namespace rowtide {
namespace {

using checkpoint::Dtype;
using checkpoint::ModelConfig;

constexpr std::array<std::string_view, 2> kDeepseekKnownAs = {"deepseek_v41", "DeepseekV41ForCausalLM"};
constexpr std::array<std::string_view, 1> kDeepseekToldBy = {"engram_layer_ids"};
constexpr std::uint64_t kScaleValues = 32;

Error config_error(const ModelConfig& config, const Error& error) {
  return make_error(error.code == ErrorCode::kUsage ? ErrorCode::kMalformed : error.code, "{}: {}", config.path(),
                    error.message);
}

/// The value of a key that must be there.
template <class T>
Result<T> required_key(const ModelConfig& config, std::string_view key, std::string_view why) {
  auto value = config.integer<T>(key);
  if (!value) return value.error();
  if (*value) return **value;
  return config.error(ErrorCode::kMalformed, key, why);
}

Result<EngramConfig> read_deepseek_config(const ModelConfig& config) {
  EngramConfig engram{};
  auto layers = config.integers<std::uint32_t>("engram_layer_ids");
  if (!layers) return layers.error();
  engram.layer_ids = layers->value_or(std::vector<std::uint32_t>());
  auto ngram_size = required_key<std::uint32_t>(config, "engram_max_ngram_size", "the highest order of the n-grams");
  if (!ngram_size) return ngram_size.error();
  auto base = required_key<std::uint64_t>(config, "engram_vocab_size", "from which on the head sizes are primes");
  if (!base) return base.error();
  if (*ngram_size < 2 || *ngram_size > 8) {
    return config.error(ErrorCode::kMalformed, "engram_max_ngram_size", "but it must be 2 to 8");
  }
  engram.base_per_order.assign(*ngram_size - 1, *base);
  auto heads = required_key<std::uint32_t>(config, "engram_n_heads", "the heads of each order");
  if (!heads) return heads.error();
  engram.heads_per_order = *heads;
  auto vocab = required_key<std::int64_t>(config, "engram_compressed_vocab_size", "from which the multipliers follow");
  if (!vocab) return vocab.error();
  engram.compressed_vocab_size = *vocab;
  // Two spellings are published.
  const bool short_name = !config.has("engram_pad_token_id");
  auto pad = required_key<std::int64_t>(config, short_name ? "engram_pad_id" : "engram_pad_token_id",
                                        "the token that fills in before a sequence's start");
  if (!pad) return pad.error();
  engram.pad_token_id = *pad;
  auto image = config.integer<std::int64_t>("image_token_id");
  if (!image) return image.error();
  engram.image_token_id = *image;
  return engram;
}

/// What the configuration says of one layer's table.
struct DeepseekLayerTable {
  AddressedTable addressed;  // its addressing is null where the model has no token map
  std::uint64_t rows;
  std::uint32_t heads_per_order;
};

Result<std::vector<DeepseekLayerTable>> deepseek_layer_tables(const ModelConfig& config,
                                                              const TokenMapSource& token_map) {
  auto engram = read_deepseek_config(config);
  if (!engram) return engram.error();
  std::vector<DeepseekLayerTable> tables;
  if (engram->layer_ids.empty()) return tables;
  auto constants = derive_engram(*engram);
  if (!constants) return config_error(config, constants.error());
  auto map = token_map();
  if (!map) return map.error();
  for (std::size_t i = 0; i < engram->layer_ids.size(); ++i) {
    const XorConstants& own = (*constants)[i];
    const std::uint32_t layer = engram->layer_ids[i];
    tables.push_back({{fmt::format("layers.{}.engram.embed", layer), layer, nullptr},
                      own.head_offsets.back() + own.head_sizes.back(),
                      engram->heads_per_order});
    if (!*map) continue;
    auto addressing = make_deepseek_engram(*engram, own, **map);
    if (!addressing) return config_error(config, addressing.error());
    tables.back().addressed.addressing = *std::move(addressing);
  }
  return tables;
}

Result<std::vector<AddressedTable>> addressed_deepseek_tables(const ModelConfig& config,
                                                              const TokenMapSource& token_map) {
  auto tables = deepseek_layer_tables(config, token_map);
  if (!tables) return tables.error();
  std::vector<AddressedTable> addressed;
  for (DeepseekLayerTable& table : *tables) addressed.push_back(std::move(table.addressed));
  return addressed;
}

/// Rows that the configuration declares must be those that its own constants give.
Result<void> check_declared_rows(const ModelConfig& config, const std::vector<DeepseekLayerTable>& tables) {
  auto declared = config.integers<std::uint64_t>("engram_num_embeddings");
  if (!declared) return declared.error();
  if (!*declared) return {};
  if ((*declared)->size() != tables.size()) {
    return config.error(ErrorCode::kMismatch, "engram_num_embeddings",
                        fmt::format("but engram_layer_ids names {} layers", tables.size()));
  }
  for (std::size_t i = 0; i < tables.size(); ++i) {
    if ((**declared)[i] == tables[i].rows) continue;
    return config.error(ErrorCode::kMismatch, "engram_num_embeddings",
                        fmt::format("but layer {} needs {} rows", tables[i].addressed.layer, tables[i].rows));
  }
  return {};
}

Result<Table> find_table(const ModelTensors& files, const ModelConfig& config, const DeepseekLayerTable& expected) {
  const AddressedTable& addressed = expected.addressed;
  Table table;
  const std::array<std::string, 1> names = {addressed.name + ".weight"};
  auto prefix = find_prefix(files, names);
  if (!prefix) return prefix.error();
  table.name = fmt::format("{}{}", prefix->value_or(""), addressed.name);
  auto codes = require_tensor(files, table.name + ".weight", "engram_layer_ids of config.json tells of it");
  if (!codes) return codes.error();
  auto scales = require_tensor(files, table.name + ".scale", "FP8 rows have no values without their scales");
  if (!scales) return scales.error();
  auto shape = row_shape(files, *codes);
  if (!shape) return shape.error();
  if (shape->width % kScaleValues != 0) {
    return tensor_error(files, *codes, ErrorCode::kMalformed,
                        fmt::format("rows of {} values cannot have a scale for each {}", shape->width, kScaleValues));
  }
  Component code_part{"values", shape->width, {}};
  if (auto added = append_rows(files, *codes, Dtype::kF8E4M3, code_part); !added) return added.error();
  Component scale_part{"scales", shape->width / kScaleValues, {}};
  if (auto added = append_rows(files, *scales, Dtype::kF8E8M0, scale_part); !added) return added.error();
  const std::uint64_t rows = expected.rows;
  for (const auto& [tensor, part] : {std::pair{&*codes, &code_part}, std::pair{&*scales, &scale_part}}) {
    if (rows_of(*part) == rows) continue;
    return tensor_error(files, *tensor, ErrorCode::kMismatch,
                        fmt::format("has {} rows, but {} follow from config.json", rows_of(*part), rows));
  }
  auto width = config.integer<std::uint64_t>("engram_head_dim");
  if (!width) return width.error();
  if (*width && **width != shape->width) {
    return config.error(ErrorCode::kMismatch, "engram_head_dim",
                        fmt::format("but the rows of tensor '{}.weight' have {} values", table.name, shape->width));
  }
  table.layer = addressed.layer;
  table.rows = rows;
  table.row_values = shape->width;
  table.row_bytes = code_part.row_bytes + scale_part.row_bytes;
  table.row_format = RowFormat::kFp8Ue8m0;
  table.addressing = addressed.addressing;
  table.bundle_rows = expected.heads_per_order;
  table.components = {std::move(code_part), std::move(scale_part)};
  return table;
}

Result<std::vector<Table>> find_deepseek_tables(const ModelTensors& files, const ModelConfig& config,
                                                const TokenMapSource& token_map) {
  auto expected = deepseek_layer_tables(config, token_map);
  if (!expected) return expected.error();
  if (auto same = check_declared_rows(config, *expected); !same) return same.error();
  std::vector<Table> tables;
  for (const DeepseekLayerTable& layer_table : *expected) {
    auto table = find_table(files, config, layer_table);
    if (!table) return table.error();
    tables.push_back(*std::move(table));
  }
  return tables;
}

}  // namespace

const ModelFamily kDeepseekFamily = {"deepseek_engram", kDeepseekKnownAs, kDeepseekToldBy, addressed_deepseek_tables,
                                     find_deepseek_tables};

}  // namespace rowtide
