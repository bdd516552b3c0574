// The n-gram tables of Qwen3.8 models in safetensors form. Tensors after "...layers.L.ple.ple_embedding.":
//   ngram_embedding.shard_K.weight   K = 0, 1, ...: the rows, one shard after the other
//       BF16, F16, F32    [rows, row values]: the values
//       F8_E4M3           [rows, row values]: codes; ngram_embedding.weight_scale, one number, is every value's factor
//       U8                [rows, row values / 2]: NVFP4 codes, two a byte. shard_K.weight_scale, F8_E4M3 [rows, row
//                         values / 16], has a scale for each 16 values; shard_K.weight_scale_2, one F32 number and the
//                         same in each shard, is every value's factor
//   ngram_embedding.weight           instead of shards: a table in one piece
//   layer_multipliers, ngram_heads_vocab_sizes, ngram_heads_offsets
//                                    I64: the addressing constants. They follow from the configuration and need not be
//                                    there; one that differs is refused
// Source: the model's published code (transformers, modular_qwen4_exp.py) and checkpoints.
#include <algorithm>
#include <array>
#include <bit>
#include <set>

#include "address/qwen_ple.h"
#include "base/checked.h"
#include "base/error.h"
#include "table/tensor_rows.h"

namespace rowtide {
namespace {

using checkpoint::Dtype;
using checkpoint::ModelConfig;
using checkpoint::SafetensorsTensor;

constexpr std::array<std::string_view, 4> kQwenKnownAs = {"qwen4_exp", "qwen4_exp_text",
                                                          "Qwen4ExpForConditionalGeneration", "Qwen4ExpForCausalLM"};
constexpr std::array<std::string_view, 1> kQwenToldBy = {"ple_layer_ids"};
constexpr std::string_view kQwenPrefix = "model.language_model.";  // of the published checkpoints

/// What is left out of text_config has the language model's default there, whatever the top level says for others.
std::string text_key(const ModelConfig& config, std::string_view key) {
  return fmt::format("{}{}", config.has("text_config") ? "text_config." : "", key);
}

/// 0-based, ascending, each once.
Result<std::set<std::uint32_t>> table_layers(const ModelConfig& config) {
  auto ids = config.integers<std::uint32_t>(text_key(config, "ple_layer_ids"));
  if (!ids) return ids.error();
  const auto layers_in_all = config.integer<std::uint32_t>(text_key(config, "num_hidden_layers"));
  if (!layers_in_all) return layers_in_all.error();
  std::set<std::uint32_t> layers;
  for (const std::uint32_t id : ids->value_or(std::vector<std::uint32_t>())) {
    if (id == 0 || id > layers_in_all->value_or(id)) {
      return config.error(
          ErrorCode::kMalformed, "ple_layer_ids",
          fmt::format("but the model's layers are counted from 1 to {} there", layers_in_all->value_or(id)));
    }
    layers.insert(id - 1);
  }
  return layers;
}

/// Of a list the first element counts, as in transformers.
Result<std::int64_t> eos_token_id(const ModelConfig& config) {
  const std::string key = text_key(config, "eos_token_id");
  auto ids = config.integers<std::int64_t>(key);
  if (!ids) return ids.error();
  if (ids->has_value() && !(*ids)->empty()) return (*ids)->front();
  return config.error(ErrorCode::kMalformed, key, "which pads the n-grams");
}

/// Sets `value` to that of the language model's `key`, if it is there.
template <class T>
Result<void> take(const ModelConfig& config, std::string_view key, T& value) {
  auto found = config.integer<T>(text_key(config, key));
  if (!found) return found.error();
  if (*found) value = **found;
  return {};
}

/// A key that is absent or null takes the default that transformers gives it.
Result<QwenPleConfig> read_qwen_config(const ModelConfig& config) {
  QwenPleConfig qwen{.vocab_size = 248320,
                     .eos_token_id = 0,
                     .image_token_id = {},
                     .base = 20'000'000,
                     .ngram_size = 3,
                     .heads_per_order = 8};
  auto eos = eos_token_id(config);
  if (!eos) return eos.error();
  qwen.eos_token_id = *eos;
  auto image = config.integer<std::int64_t>("image_token_id");
  if (!image) return image.error();
  qwen.image_token_id = *image;
  for (const auto& taken :
       {take(config, "vocab_size", qwen.vocab_size), take(config, "seed", qwen.seed),
        take(config, "ngram_vocab_size_base", qwen.base), take(config, "ngram_size", qwen.ngram_size),
        take(config, "heads_per_ngram", qwen.heads_per_order)}) {
    if (!taken) return taken.error();
  }
  return qwen;
}

/// What the configuration says of one layer's table.
struct QwenLayerTable {
  AddressedTable addressed;
  QwenPleConstants constants;
};

std::string table_name(std::string_view prefix, std::uint32_t layer) {
  return fmt::format("{}layers.{}.ple.ple_embedding.ngram_embedding", prefix, layer);
}

Result<std::vector<QwenLayerTable>> qwen_layer_tables(const ModelConfig& config) {
  auto layers = table_layers(config);
  if (!layers) return layers.error();
  std::vector<QwenLayerTable> tables;
  if (layers->empty()) return tables;
  auto qwen = read_qwen_config(config);
  if (!qwen) return qwen.error();
  for (const std::uint32_t layer : *layers) {
    qwen->dense_index = static_cast<std::uint32_t>(tables.size());
    auto constants = derive_qwen_ple(*qwen);
    if (!constants) return make_error(ErrorCode::kMalformed, "{}: {}", config.path(), constants.error().message);
    tables.push_back({{table_name(kQwenPrefix, layer), layer, make_qwen_ple(*qwen, *constants)}, *constants});
  }
  return tables;
}

Result<std::vector<AddressedTable>> addressed_qwen_tables(const ModelConfig& config,
                                                          const TokenMapSource& /*token_map*/) {
  auto tables = qwen_layer_tables(config);
  if (!tables) return tables.error();
  std::vector<AddressedTable> addressed;
  for (QwenLayerTable& table : *tables) addressed.push_back(std::move(table.addressed));
  return addressed;
}

/// Reads one layer's table out of the checkpoint.
class LayerFinder {
 public:
  LayerFinder(const ModelTensors& files, const ModelConfig& config, const QwenLayerTable& expected)
      : files_(files), config_(config), expected_(expected) {}

  Result<Table> find() {
    if (auto located = locate(); !located) return located.error();
    using Step = Result<void> (LayerFinder::*)();
    for (const Step step : {&LayerFinder::read_form, &LayerFinder::check_declared_type, &LayerFinder::read_rows,
                            &LayerFinder::read_table_scale, &LayerFinder::refuse_other_scales,
                            &LayerFinder::check_shape, &LayerFinder::check_constants}) {
      if (auto done = (this->*step)(); !done) return done.error();
    }
    return std::move(table_);
  }

 private:
  /// The names of the table's tensors.
  Result<void> locate() {
    const std::string base = table_name("", expected_.addressed.layer);
    const std::array<std::string, 2> firsts = {base + ".weight", base + ".shard_0.weight"};
    auto prefix = find_prefix(files_, firsts);
    if (!prefix) return prefix.error();
    if (!*prefix) return refuse_other_forms();
    table_.name = fmt::format("{}{}", **prefix, base);
    const auto whole = tensor(table_.name + ".weight");
    for (std::size_t k = 0; tensor(fmt::format("{}.shard_{}.weight", table_.name, k)); ++k) {
      shards_.push_back(fmt::format("{}.shard_{}", table_.name, k));
    }
    if (whole && !shards_.empty()) {
      return tensor_error(files_, *whole, ErrorCode::kMalformed, "holds the table, but so do the shards beside it");
    }
    if (whole) shards_.push_back(table_.name);
    return {};
  }

  /// Tables in forms of other engines, by the names of their tensors.
  Result<void> refuse_other_forms() const {
    const std::string& name = expected_.addressed.name;
    for (const auto& [suffix, form] :
         {std::pair{".trellis", "EXL3 n-gram trellis"}, std::pair{".shard_0.trellis", "EXL3 n-gram trellis"},
          std::pair{".shards.0.weight", "MLX affine"}}) {
      if (auto tensor = files_.tensors.tensors().find(name + suffix)) {
        return tensor_error(files_, *tensor, ErrorCode::kUnsupported, fmt::format("{} tables are not served", form));
      }
    }
    return require_tensor(files_, name + ".shard_0.weight", "ple_layer_ids of config.json tells of it").error();
  }

  Result<void> read_form() {
    const SafetensorsTensor first = *tensor(shards_.front() + ".weight");
    dtype_ = first.dtype;
    auto shape = row_shape(files_, first);
    if (!shape) return shape.error();
    table_.row_values = shape->width;
    switch (dtype_) {
      case Dtype::kF32: table_.row_format = RowFormat::kF32; break;
      case Dtype::kF16: table_.row_format = RowFormat::kF16; break;
      case Dtype::kBF16: table_.row_format = RowFormat::kBf16; break;
      case Dtype::kF8E4M3: table_.row_format = RowFormat::kFp8; break;
      case Dtype::kU8:
        table_.row_format = RowFormat::kNvfp4;
        table_.row_values = shape->width * 2;
        break;
      case Dtype::kU32:
      case Dtype::kI32:
        return tensor_error(files_, first, ErrorCode::kUnsupported,
                            "packed words, as MLX's affine tables have them, are not served");
      default:
        return tensor_error(files_, first, ErrorCode::kUnsupported,
                            fmt::format("is of type {}; a table can be BF16, F16, F32, F8_E4M3 or U8 (NVFP4)",
                                        checkpoint::dtype_name(dtype_)));
    }
    const auto bytes = row_bytes(table_.row_format, table_.row_values);
    if (bytes) table_.row_bytes = *bytes;
    if (bytes && *bytes > 0) return {};
    return tensor_error(
        files_, first, ErrorCode::kMalformed,
        fmt::format("rows of {} values cannot be {}", table_.row_values, row_format_name(table_.row_format)));
  }

  /// The type is the header's; a configuration that says another means that one of the two is not this model's.
  Result<void> check_declared_type() {
    auto declared = config_.text("ple_embedding_dtype");
    if (!declared) return declared.error();
    if (!*declared || **declared == "auto" || (*declared)->empty()) return {};
    std::string_view name = **declared;
    if (name.starts_with("torch.")) name.remove_prefix(6);
    if (name == "nf4") return config_.error(ErrorCode::kUnsupported, "ple_embedding_dtype", "which is not served");
    using Named = std::pair<std::string_view, Dtype>;
    for (const auto& [known, dtype] :
         {Named{"float8_e4m3fn", Dtype::kF8E4M3}, Named{"float8_e4m3", Dtype::kF8E4M3}, Named{"fp8", Dtype::kF8E4M3},
          Named{"bfloat16", Dtype::kBF16}, Named{"bf16", Dtype::kBF16}, Named{"float16", Dtype::kF16},
          Named{"fp16", Dtype::kF16}, Named{"float32", Dtype::kF32}, Named{"fp32", Dtype::kF32},
          Named{"nvfp4", Dtype::kU8}}) {
      if (known == name && dtype_ == dtype) return {};
    }
    return config_.error(
        ErrorCode::kMismatch, "ple_embedding_dtype",
        fmt::format("but tensor '{}.weight' is of type {}", shards_.front(), checkpoint::dtype_name(dtype_)));
  }

  Result<void> read_rows() {
    const bool is_nvfp4 = table_.row_format == RowFormat::kNvfp4;
    const std::uint64_t scale_bytes = is_nvfp4 ? table_.row_values / 16 : 0;
    Component values{"values", table_.row_bytes - scale_bytes, {}};
    Component scales{"scales", scale_bytes, {}};
    for (const std::string& shard : shards_) {
      if (auto added = append_rows(files_, *tensor(shard + ".weight"), dtype_, values); !added) return added;
      if (!is_nvfp4) continue;
      auto scale = require_tensor(files_, shard + ".weight_scale", "NVFP4 rows need a scale for each 16 values");
      if (!scale) return scale.error();
      if (auto added = append_rows(files_, *scale, Dtype::kF8E4M3, scales); !added) return added;
      if (rows_of(scales) != rows_of(values)) {
        return tensor_error(files_, *scale, ErrorCode::kMalformed,
                            "has another number of rows than the codes it scales");
      }
    }
    table_.rows = rows_of(values);
    table_.components.push_back(std::move(values));
    if (is_nvfp4) table_.components.push_back(std::move(scales));
    return {};
  }

  Result<void> read_table_scale() {
    if (table_.row_format == RowFormat::kFp8) return read_fp8_scale();
    if (table_.row_format == RowFormat::kNvfp4) return read_nvfp4_scale();
    return {};
  }

  /// What would change the values of rows of another form means that they are not of this one.
  Result<void> refuse_other_scales() {
    const auto& tensors = files_.tensors.tensors();
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const std::string_view name = tensors[i].name;
      if (!name.starts_with(table_.name) || is_used_scale(name)) continue;
      const std::string_view rest = name.substr(table_.name.size());
      if (rest.find("scale") == std::string_view::npos && rest.find("bias") == std::string_view::npos) continue;
      return tensor_error(files_, tensors[i], ErrorCode::kMismatch,
                          fmt::format("is there, but {} rows have no such part", row_format_name(table_.row_format)));
    }
    return {};
  }

  bool is_used_scale(std::string_view name) const {
    if (table_.row_format == RowFormat::kFp8) return name == table_.name + ".weight_scale";
    if (table_.row_format != RowFormat::kNvfp4) return false;
    return std::any_of(shards_.begin(), shards_.end(), [&](const std::string& shard) {
      return name == shard + ".weight_scale" || name == shard + ".weight_scale_2";
    });
  }

  /// Engines round it to bfloat16 before they multiply.
  Result<void> read_fp8_scale() {
    auto scale = require_tensor(files_, table_.name + ".weight_scale", "FP8 rows have no values without their scale");
    if (!scale) return scale.error();
    auto value = read_scale(files_, *scale);
    if (!value) return value.error();
    std::uint16_t rounded = 0;
    decode_bf16({RowFormat::kF32, 1}, reinterpret_cast<const std::byte*>(&*value), 1, &rounded);
    table_.scale = std::bit_cast<float>(std::uint32_t{rounded} << 16);
    return {};
  }

  Result<void> read_nvfp4_scale() {
    for (const std::string& shard : shards_) {
      auto scale = require_tensor(files_, shard + ".weight_scale_2", "NVFP4 rows have no values without it");
      if (!scale) return scale.error();
      auto value = read_scale(files_, *scale);
      if (!value) return value.error();
      if (&shard == &shards_.front()) table_.scale = *value;
      if (*value == table_.scale) continue;
      return tensor_error(
          files_, *scale, ErrorCode::kUnsupported,
          fmt::format("{} is not {}, that of shard 0; one factor for the whole table is served", *value, table_.scale));
    }
    return {};
  }

  /// The rows are those that the configuration needs, padded as it says, in as many shards.
  Result<void> check_shape() {
    table_.layer = expected_.addressed.layer;
    table_.addressing = expected_.addressed.addressing;
    table_.bundle_rows = table_.addressing->heads_per_order();
    auto divisor = config_.integer<std::uint64_t>(text_key(config_, "make_ngram_vocab_size_divisible_by"));
    if (!divisor) return divisor.error();
    const std::uint64_t multiple = divisor->value_or(128);
    if (multiple == 0) {
      return config_.error(ErrorCode::kMalformed, "make_ngram_vocab_size_divisible_by", "which divides nothing");
    }
    const std::uint64_t used = table_.addressing->row_count();
    const auto padded = checked_add(used, (multiple - used % multiple) % multiple);
    if (!padded || *padded != table_.rows) {
      return tensor_error(files_, *tensor(shards_.back() + ".weight"), ErrorCode::kMismatch,
                          fmt::format("is the last of {} shards with {} rows in all, but {} rows, padded to a multiple "
                                      "of {}, follow from config.json: a shard is missing or not this model's",
                                      shards_.size(), table_.rows, used, multiple));
    }
    auto width = config_.integer<std::uint64_t>(text_key(config_, "ple_embed_dim"));
    if (!width) return width.error();
    const std::uint64_t heads = table_.addressing->rows_per_token();
    if (!*width || (**width % heads == 0 && **width / heads == table_.row_values)) return {};
    return config_.error(ErrorCode::kMismatch, "ple_embed_dim",
                         fmt::format("but {} heads of {} values are stored", heads, table_.row_values));
  }

  Result<void> check_constants() {
    const std::string prefix = table_.name.substr(0, table_.name.rfind('.') + 1);
    const QwenPleConstants& derived = expected_.constants;
    for (const auto& [name, numbers] : {std::pair{"layer_multipliers", &derived.multipliers},
                                        std::pair{"ngram_heads_vocab_sizes", &derived.head_sizes},
                                        std::pair{"ngram_heads_offsets", &derived.head_offsets}}) {
      const auto stored_tensor = tensor(prefix + name);
      if (!stored_tensor) continue;
      auto stored = read_integers(files_, *stored_tensor, numbers->size());
      if (!stored) return stored.error();
      const auto differs = std::mismatch(stored->begin(), stored->end(), numbers->begin()).first;
      if (differs == stored->end()) continue;
      const auto index = static_cast<std::size_t>(differs - stored->begin());
      return tensor_error(
          files_, *stored_tensor, ErrorCode::kMismatch,
          fmt::format("[{}] is {}, but {} follows from config.json", index, *differs, (*numbers)[index]));
    }
    return {};
  }

  std::optional<SafetensorsTensor> tensor(const std::string& name) const { return files_.tensors.tensors().find(name); }

  const ModelTensors& files_;
  const ModelConfig& config_;
  const QwenLayerTable& expected_;
  std::vector<std::string> shards_;  // their tensors' names, less ".weight"
  Dtype dtype_ = Dtype::kUnknown;
  Table table_;
};

Result<std::vector<Table>> find_qwen_tables(const ModelTensors& files, const ModelConfig& config,
                                            const TokenMapSource& /*token_map*/) {
  auto expected = qwen_layer_tables(config);
  if (!expected) return expected.error();
  std::vector<Table> tables;
  for (const QwenLayerTable& table : *expected) {
    auto found = LayerFinder(files, config, table).find();
    if (!found) return found.error();
    tables.push_back(*std::move(found));
  }
  return tables;
}

}  // namespace

const ModelFamily kQwenFamily = {"qwen_ple", kQwenKnownAs, kQwenToldBy, addressed_qwen_tables, find_qwen_tables};

}  // namespace rowtide
