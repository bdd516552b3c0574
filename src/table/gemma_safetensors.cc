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

constexpr std::array<std::string_view, 8> kGemmaKnownAs = {"gemma3n",
                                                           "gemma3n_text",
                                                           "gemma4",
                                                           "gemma4_text",
                                                           "Gemma3nForConditionalGeneration",
                                                           "Gemma3nForCausalLM",
                                                           "Gemma4ForConditionalGeneration",
                                                           "Gemma4ForCausalLM"};
constexpr std::array<std::string_view, 1> kGemmaToldBy = {"hidden_size_per_layer_input"};
constexpr std::string_view kGemmaName = "embed_tokens_per_layer";
constexpr std::string_view kGemmaPrefix = "model.language_model.";  // of the published checkpoints
constexpr std::int64_t kVocabSize = 262'144;                        // of a configuration that does not say

/// 0 for the models of the family that have none.
Result<std::uint64_t> values_per_layer(const ModelConfig& config) {
  auto values = config.integer<std::uint64_t>("hidden_size_per_layer_input");
  if (!values) return values.error();
  return values->value_or(0);
}

/// Positions of images, sound and video read the pad token's row; the ids that stand for them lie outside the table in
/// Gemma 3n, and inside it in Gemma 4.
Result<std::shared_ptr<const Addressing>> read_addressing(const ModelConfig& config) {
  UnigramConfig unigram{.vocab_size = kVocabSize, .image_token_id = {}, .other_media_token_ids = {}};
  auto vocab = config.integer<std::int64_t>("vocab_size_per_layer_input");
  if (!vocab) return vocab.error();
  unigram.vocab_size = vocab->value_or(kVocabSize);
  auto pad = config.integer<std::int64_t>("pad_token_id");
  if (!pad) return pad.error();
  unigram.pad_token_id = pad->value_or(0);
  auto image = config.integer<std::int64_t>("image_token_id");
  if (!image) return image.error();
  unigram.image_token_id = *image;
  for (const std::string_view key : {"audio_token_id", "video_token_id"}) {
    auto media = config.integer<std::int64_t>(key);
    if (!media) return media.error();
    if (*media) unigram.other_media_token_ids.push_back(**media);
  }
  auto addressing = make_unigram(unigram);
  if (!addressing) return make_error(ErrorCode::kMalformed, "{}: {}", config.path(), addressing.error().message);
  return addressing;
}

Result<std::vector<AddressedTable>> addressed_gemma_tables(const ModelConfig& config,
                                                           const TokenMapSource& /*token_map*/) {
  auto values = values_per_layer(config);
  if (!values) return values.error();
  if (*values == 0) return std::vector<AddressedTable>();
  auto addressing = read_addressing(config);
  if (!addressing) return addressing.error();
  return std::vector<AddressedTable>{{fmt::format("{}{}", kGemmaPrefix, kGemmaName), 0, *std::move(addressing)}};
}

std::optional<RowFormat> row_format_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::kBF16: return RowFormat::kBf16;
    case Dtype::kF16: return RowFormat::kF16;
    case Dtype::kF32: return RowFormat::kF32;
    default: return std::nullopt;
  }
}

Result<Table> find_table(const ModelTensors& files, const ModelConfig& config, const AddressedTable& addressed) {
  Table table;
  const std::array<std::string, 1> names = {fmt::format("{}.weight", kGemmaName)};
  auto prefix = find_prefix(files, names);
  if (!prefix) return prefix.error();
  table.name = fmt::format("{}{}", prefix->value_or(kGemmaPrefix), kGemmaName);
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

Result<std::vector<Table>> find_gemma_tables(const ModelTensors& files, const ModelConfig& config,
                                             const TokenMapSource& token_map) {
  auto expected = addressed_gemma_tables(config, token_map);
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

const ModelFamily kGemmaFamily = {"unigram", kGemmaKnownAs, kGemmaToldBy, addressed_gemma_tables, find_gemma_tables};

}  // namespace rowtide
