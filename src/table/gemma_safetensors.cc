// The per-layer embeddings of Gemma 3n and Gemma 4 E-models in safetensors form: a row for each token id, which holds
// what all layers read.
//   ...embed_tokens_per_layer.weight   BF16, F16 or F32 [vocabulary, layers * values a layer]
// Rows are as stored; the model multiplies them by the square root of the values a layer.
// Source: the models' published code (transformers, modular_gemma3n.py).
#include <array>

#include "address/unigram.h"
#include "base/error.h"
#include "table/tensor_rows.h"

namespace rowtide {
namespace {

using checkpoint::Dtype;
using checkpoint::ModelConfig;

constexpr std::array<std::string_view, 8> kKnownAs = {"gemma3n",
                                                      "gemma3n_text",
                                                      "gemma4",
                                                      "gemma4_text",
                                                      "Gemma3nForConditionalGeneration",
                                                      "Gemma3nForCausalLM",
                                                      "Gemma4ForConditionalGeneration",
                                                      "Gemma4ForCausalLM"};
constexpr std::array<std::string_view, 1> kToldBy = {"vocab_size_per_layer_input"};
constexpr std::array<std::string_view, 3> kNames = {"model.language_model.embed_tokens_per_layer",
                                                    "model.embed_tokens_per_layer",
                                                    "language_model.model.embed_tokens_per_layer"};

/// 0 for the models of the family that have none.
Result<std::uint64_t> values_per_layer(const ModelConfig& config) {
  auto values = config.integer<std::uint64_t>("hidden_size_per_layer_input");
  if (!values) return values.error();
  return values->value_or(0);
}

Result<std::vector<AddressedTable>> addressed_tables(const ModelConfig& config, const TokenMapSource& /*token_map*/) {
  auto values = values_per_layer(config);
  if (!values) return values.error();
  if (*values == 0) return std::vector<AddressedTable>();
  auto vocab = config.integer<std::int64_t>("vocab_size_per_layer_input");
  if (!vocab) return vocab.error();
  auto image = config.integer<std::int64_t>("image_token_id");
  if (!image) return image.error();
  auto addressing = make_unigram({vocab->value_or(0), *image});
  if (!addressing) return make_error(ErrorCode::kMalformed, "{}: {}", config.path(), addressing.error().message);
  return std::vector<AddressedTable>{{std::string(kNames.front()), 0, *std::move(addressing)}};
}

std::optional<RowFormat> row_format_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::kBF16: return RowFormat::kBf16;
    case Dtype::kF16: return RowFormat::kF16;
    case Dtype::kF32: return RowFormat::kF32;
    default: return std::nullopt;
  }
}

Result<Table> find_table(const ModelFiles& files, const ModelConfig& config, const AddressedTable& addressed) {
  Table table;
  table.name = addressed.name;
  for (const std::string_view name : kNames) {
    if (files.tensors.tensors().find(fmt::format("{}.weight", name))) table.name = name;
  }
  auto rows = require_tensor(files, table.name + ".weight", "hidden_size_per_layer_input of config.json tells of it");
  if (!rows) return rows.error();
  const auto format = row_format_of(rows->dtype);
  if (!format) {
    return tensor_error(
        files, *rows, ErrorCode::kUnsupported,
        fmt::format("is of type {}; a table can be BF16, F16 or F32", checkpoint::dtype_name(rows->dtype)));
  }
  auto shape = row_shape(files, *rows);
  if (!shape) return shape.error();
  auto values = values_per_layer(config);
  if (!values) return values.error();
  auto layers = config.integer<std::uint64_t>("num_hidden_layers");
  if (!layers) return layers.error();
  const bool known = layers->has_value() && **layers > 0;
  if (shape->rows != addressed.addressing->row_count() || shape->width % *values != 0 ||
      (known && shape->width / *values != **layers)) {
    return tensor_error(files, *rows, ErrorCode::kMismatch,
                        fmt::format("shape [{}, {}] is not what config.json tells of: {} rows of {} values a layer",
                                    shape->rows, shape->width, addressed.addressing->row_count(), *values));
  }
  table.rows = shape->rows;
  table.row_values = shape->width;
  table.row_format = *format;
  table.row_bytes = rows->bytes / rows->shape[0];
  Component component{"values", table.row_bytes, {}};
  if (auto added = append_rows(files, *rows, rows->dtype, component); !added) return added.error();
  table.components.push_back(std::move(component));
  table.addressing = addressed.addressing;
  return table;
}

Result<std::vector<Table>> find_tables(const ModelFiles& files, const ModelConfig& config,
                                       const TokenMapSource& token_map) {
  auto expected = addressed_tables(config, token_map);
  if (!expected) return expected.error();
  std::vector<Table> tables;
  for (const AddressedTable& addressed : *expected) {
    auto table = find_table(files, config, addressed);
    if (!table) return table.error();
    tables.push_back(*std::move(table));
  }
  return tables;
}

}  // namespace

const ModelFamily kGemmaFamily = {"unigram", kKnownAs, kToldBy, addressed_tables, find_tables};

}  // namespace rowtide
