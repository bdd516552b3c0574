#include "table/qwen_gguf.h"

#include <limits>
#include <utility>
#include <vector>

#include "address/primes.h"
#include "address/qwen_ple.h"
#include "base/checked.h"
#include "base/error.h"

namespace rowtide {
namespace {

using checkpoint::Gguf;
using checkpoint::Metadata;
using checkpoint::Tensor;

constexpr std::string_view kQwenTensor = "per_layer_token_embd.weight";
constexpr std::string_view kTokenTensor = "token_embd.weight";
constexpr std::string_view kLayers = "qwen4exp.ple.layers";
constexpr std::string_view kLayerCount = "qwen4exp.block_count";
constexpr std::string_view kNgramSize = "qwen4exp.ple.ngram_size";
constexpr std::string_view kHeadsPerOrder = "qwen4exp.ple.heads_per_ngram";
constexpr std::string_view kEos = "qwen4exp.ple.eos_token_id";
constexpr std::string_view kImage = "qwen4exp.ple.image_token_id";
constexpr std::string_view kMultipliers = "qwen4exp.ple.layer_multipliers";
constexpr std::string_view kHeadSizes = "qwen4exp.ple.head_vocab_sizes";
constexpr std::string_view kHeadOffsets = "qwen4exp.ple.head_offsets";
constexpr std::string_view kRowValues = "qwen4exp.embedding_length_per_layer_input";
constexpr std::string_view kVocabSizeKey = "qwen4exp.vocab_size";
constexpr std::string_view kTokens = "tokenizer.ggml.tokens";

// Bounds of the format, which llama.cpp demands as well.
constexpr std::uint64_t kMaxNgramSize = 8;
constexpr std::uint64_t kMaxHeads = 64;
constexpr std::uint64_t kMaxLayers = 512;
constexpr std::uint64_t kMaxTokenId = std::numeric_limits<std::int32_t>::max();

Error tensor_error(const Gguf& gguf, ErrorCode code, std::string_view message) {
  const Tensor* tensor = gguf.find_tensor(kQwenTensor);
  return make_error(code, "{}: tensor '{}': {}", tensor ? gguf.path_of(*tensor) : gguf.files.front().path, kQwenTensor,
                    message);
}

/// A required integer between two bounds, both included.
Result<std::uint64_t> bounded(const Metadata& metadata, std::string_view key, std::uint64_t least, std::uint64_t most) {
  auto value = metadata.integer(key);
  if (value && (*value < least || *value > most)) {
    return metadata.error(ErrorCode::kMalformed, key, fmt::format("{} is not {} to {}", *value, least, most));
  }
  return value;
}

Result<std::uint32_t> read_layer(const Metadata& metadata, const std::vector<std::uint64_t>& layers) {
  if (layers.size() != 1) {
    return metadata.error(ErrorCode::kUnsupported, kLayers,
                          fmt::format("lists {} layers, one is served", layers.size()));
  }
  auto count = bounded(metadata, kLayerCount, 1, kMaxLayers);
  if (!count) return count.error();
  if (layers[0] >= *count) {
    return metadata.error(ErrorCode::kMalformed, kLayers,
                          fmt::format("[0] is {}, but the model has {} layers", layers[0], *count));
  }
  return static_cast<std::uint32_t>(layers[0]);
}

/// Ids are below the vocabulary's size; where that is not a key of its own, the token embedding or the tokenizer tells
/// it.
Result<std::uint64_t> read_vocab_size(const Gguf& gguf) {
  const Metadata& metadata = gguf.metadata;
  if (metadata.has(kVocabSizeKey)) return bounded(metadata, kVocabSizeKey, 1, kMaxTokenId);
  if (const Tensor* tokens = gguf.find_tensor(kTokenTensor)) {
    if (tokens->shape[1] >= 1 && tokens->shape[1] <= kMaxTokenId) return tokens->shape[1];
    return make_error(ErrorCode::kMalformed, "{}: tensor '{}': {} rows are no vocabulary", gguf.path_of(*tokens),
                      kTokenTensor, tokens->shape[1]);
  }
  auto size = metadata.array_size(kTokens);
  if (size && (*size < 1 || *size > kMaxTokenId)) {
    return metadata.error(ErrorCode::kMalformed, kTokens, fmt::format("{} tokens are no vocabulary", *size));
  }
  return size;
}

/// All of the configuration but the base, which the head sizes tell.
Result<QwenPleConfig> read_config(const Gguf& gguf) {
  const Metadata& metadata = gguf.metadata;
  auto vocab_size = read_vocab_size(gguf);
  if (!vocab_size) return vocab_size.error();
  auto ngram_size = bounded(metadata, kNgramSize, 2, kMaxNgramSize);
  if (!ngram_size) return ngram_size.error();
  auto heads_per_order = bounded(metadata, kHeadsPerOrder, 1, kMaxHeads / (*ngram_size - 1));
  if (!heads_per_order) return heads_per_order.error();
  auto eos = bounded(metadata, kEos, 0, *vocab_size - 1);
  if (!eos) return eos.error();
  QwenPleConfig config{};
  config.vocab_size = static_cast<std::int64_t>(*vocab_size);
  config.eos_token_id = static_cast<TokenId>(*eos);
  config.seed = 1234;
  config.ngram_size = static_cast<std::uint32_t>(*ngram_size);
  config.heads_per_order = static_cast<std::uint32_t>(*heads_per_order);
  if (metadata.has(kImage)) {
    auto image = bounded(metadata, kImage, 0, kMaxTokenId);
    if (!image) return image.error();
    config.image_token_id = static_cast<TokenId>(*image);
  }
  return config;
}

Result<std::vector<std::uint64_t>> read_constants(const Metadata& metadata, std::string_view key, std::size_t count) {
  auto values = metadata.integers(key);
  if (values && values->size() != count) {
    return metadata.error(ErrorCode::kMismatch, key,
                          fmt::format("has {} entries, the configuration needs {}", values->size(), count));
  }
  return values;
}

Result<QwenPleConstants> read_constants(const Metadata& metadata, const QwenPleConfig& config) {
  const std::size_t heads = std::size_t{config.ngram_size - 1} * config.heads_per_order;
  auto multipliers = read_constants(metadata, kMultipliers, config.ngram_size);
  if (!multipliers) return multipliers.error();
  auto sizes = read_constants(metadata, kHeadSizes, heads);
  if (!sizes) return sizes.error();
  auto offsets = read_constants(metadata, kHeadOffsets, heads);
  if (!offsets) return offsets.error();
  return QwenPleConstants{*std::move(multipliers), *std::move(sizes), *std::move(offsets)};
}

/// Every head's rows lie in the table. Checked first: it bounds all that is derived.
Result<void> check_ranges(const Metadata& metadata, const QwenPleConstants& stored, std::uint64_t rows) {
  for (std::size_t head = 0; head < stored.head_sizes.size(); ++head) {
    const auto end = checked_add(stored.head_offsets[head], stored.head_sizes[head]);
    if (end && *end <= rows) continue;
    return metadata.error(ErrorCode::kMalformed, kHeadOffsets,
                          fmt::format("[{}] is {}, so with {} rows the head ends outside the table's {} rows", head,
                                      stored.head_offsets[head], stored.head_sizes[head], rows));
  }
  return {};
}

Result<void> compare(const Metadata& metadata, std::string_view key, const std::vector<std::uint64_t>& stored,
                     const std::vector<std::uint64_t>& derived) {
  for (std::size_t i = 0; i < stored.size(); ++i) {
    if (stored[i] == derived[i]) continue;
    return metadata.error(ErrorCode::kMismatch, key,
                          fmt::format("[{}] is {}, but {} follows from the configuration", i, stored[i], derived[i]));
  }
  return {};
}

Result<std::shared_ptr<const Addressing>> read_addressing(const Gguf& gguf, std::uint64_t rows) {
  const Metadata& metadata = gguf.metadata;
  auto config = read_config(gguf);
  if (!config) return config.error();
  auto stored = read_constants(metadata, *config);
  if (!stored) return stored.error();
  if (auto inside = check_ranges(metadata, *stored, rows); !inside) return inside.error();
  config->base = stored->head_sizes[0];
  if (!is_prime(config->base)) {
    return metadata.error(ErrorCode::kMismatch, kHeadSizes, fmt::format("[0] is {}, which is no prime", config->base));
  }
  auto derived = derive_qwen_ple(*config);
  if (!derived) return metadata.error(ErrorCode::kMalformed, kHeadSizes, derived.error().message);
  if (auto same = compare(metadata, kMultipliers, stored->multipliers, derived->multipliers); !same)
    return same.error();
  if (auto same = compare(metadata, kHeadSizes, stored->head_sizes, derived->head_sizes); !same) return same.error();
  if (auto same = compare(metadata, kHeadOffsets, stored->head_offsets, derived->head_offsets); !same)
    return same.error();
  return make_qwen_ple(*config, *derived);
}

Result<RowFormat> read_row_format(const Gguf& gguf, const Tensor& tensor) {
  if (const auto format = row_format_named(tensor.type->name)) return *format;
  return tensor_error(
      gguf, ErrorCode::kUnsupported,
      fmt::format("is of type {}; a table can be f32, f16, bf16, q8_0, q4_0 or iq4_nl", tensor.type->name));
}

Result<void> check_shape(const Gguf& gguf, const Tensor& tensor) {
  const auto& [width, rows, d2, d3] = tensor.shape;
  if (width == 0 || rows == 0 || d2 != 1 || d3 != 1) {
    return tensor_error(gguf, ErrorCode::kMalformed,
                        fmt::format("shape [{}, {}, {}, {}] is no table", width, rows, d2, d3));
  }
  auto stored = gguf.metadata.integer(kRowValues);
  if (!stored) return stored.error();
  if (*stored == width) return {};
  return gguf.metadata.error(
      ErrorCode::kMismatch, kRowValues,
      fmt::format("{}, but the rows of tensor '{}' have {} values", *stored, kQwenTensor, width));
}

/// All but the layer.
Result<Table> read_table(const Gguf& gguf, const Tensor& tensor) {
  auto format = read_row_format(gguf, tensor);
  if (!format) return format.error();
  if (auto shape = check_shape(gguf, tensor); !shape) return shape.error();
  auto addressing = read_addressing(gguf, tensor.shape[1]);
  if (!addressing) return addressing.error();
  Table table;
  table.name = tensor.name;
  table.row_format = *format;
  table.row_values = tensor.shape[0];
  table.rows = tensor.shape[1];
  table.row_bytes = tensor.bytes / table.rows;
  const checkpoint::GgufFile& file = gguf.files[tensor.file];
  const Extent extent{file.path, tensor.offset, 0, table.rows, file.header_bytes, file.stamp};
  table.components = {{"values", table.row_bytes, {extent}}};
  table.addressing = *std::move(addressing);
  table.bundle_rows = table.addressing->heads_per_order();
  return table;
}

}  // namespace

Result<std::vector<Table>> find_qwen_tables(const Gguf& gguf) {
  const Tensor* tensor = gguf.find_tensor(kQwenTensor);
  std::vector<std::uint64_t> layers;
  if (gguf.metadata.has(kLayers)) {
    auto stored = gguf.metadata.integers(kLayers);
    if (!stored) return stored.error();
    layers = *std::move(stored);
  }
  if (layers.empty() && tensor == nullptr) return std::vector<Table>();
  if (layers.empty()) {
    return tensor_error(gguf, ErrorCode::kMalformed, fmt::format("is there, but key '{}' names no layer", kLayers));
  }
  if (tensor == nullptr) {
    return tensor_error(gguf, ErrorCode::kMalformed, fmt::format("is missing, but key '{}' is there", kLayers));
  }
  auto layer = read_layer(gguf.metadata, layers);
  if (!layer) return layer.error();
  auto table = read_table(gguf, *tensor);
  if (!table) return table.error();
  table->layer = *layer;
  return std::vector<Table>{*std::move(table)};
}

}  // namespace rowtide
