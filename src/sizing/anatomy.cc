// The anatomy of a checkpoint: each of its tensors to its part, and what its headers say of the layers.
#include "sizing/anatomy.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <functional>
#include <map>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/printable.h"
#include "checkpoint/gguf.h"
#include "checkpoint/model_config.h"
#include "checkpoint/safetensors.h"
#include "io/file.h"
#include "io/folder.h"
#include "rowtide/checkpoint.h"
#include "sizing/layers.h"
#include "sizing/model_keys.h"
#include "sizing/tensor_parts.h"

namespace rowtide::sizing {
namespace {

/// A tensor of either kind of file.
struct TensorFacts {
  std::string_view name;
  std::string_view path;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  std::uint64_t values = 0;      // as stored: several may be packed into one
  std::string_view type;         // "BF16", "Q4_K"
  std::uint64_t last_width = 0;  // of the innermost dimension, as stored
};

/// Where the rows of tables lie.
class TablePlaces {
 public:
  explicit TablePlaces(const std::vector<Table>& tables) {
    for (const Table& table : tables) {
      for (const Component& component : table.components) {
        for (const Extent& extent : component.extents) {
          places_[extent.path][extent.offset] = extent.offset + extent.rows * component.row_bytes;
        }
      }
    }
  }

  bool hold(const TensorFacts& tensor) const {
    const auto file = places_.find(tensor.path);
    if (file == places_.end()) return false;
    const auto next = file->second.upper_bound(tensor.offset);
    return next != file->second.begin() && tensor.offset < std::prev(next)->second;
  }

 private:
  std::map<std::string, std::map<std::uint64_t, std::uint64_t>, std::less<>> places_;  // of each file: start to end
};

/// Values of a tensor that holds no scales. Integers of a weight hold several values of 4 bits: two in each byte.
std::uint64_t parameters_of(const TensorFacts& tensor, const Model& model) {
  if (tensor.type == "I64") return 0;  // constants
  if (tensor.type == "I32" || tensor.type == "U32") return tensor.values * 8;
  const bool is_half_wide = tensor.last_width * 2 == model.hidden || tensor.last_width * 2 == model.expert_width;
  if (tensor.type == "U8" || (tensor.type == "I8" && is_half_wide)) return tensor.values * 2;
  return tensor.values;
}

/// Adds up tensors by part, and what most of them are stored as.
class PartSums {
 public:
  PartSums(const TablePlaces& tables, std::uint32_t layers, Model& model)
      : tables_(tables), layers_(layers), model_(model) {}

  void add(const TensorFacts& tensor) {
    const Part part = tables_.hold(tensor) ? Part::kTable : part_of_tensor(tensor.name, layers_);
    PartSize& size = model_.part(part);
    size.bytes += tensor.bytes;
    const bool scales = is_scale(tensor.name);
    if (!scales) size.parameters += parameters_of(tensor, model_);
    ++tensors_[static_cast<std::size_t>(part)][std::string(tensor.type)];
    if (part == Part::kTable) return;
    if (!scales) bytes_by_type_[std::string(tensor.type)] += tensor.bytes;
    has_nvfp4_scales_ |= scales && tensor.name.ends_with("weight_scale_2");
  }

  void finish() {
    for (std::size_t i = 0; i < kParts; ++i) {
      std::vector<std::string> counts;
      for (const auto& [type, count] : tensors_[i]) counts.push_back(fmt::format("{} of {}", count, type));
      if (counts.empty()) continue;
      model_.parts[i].source = fmt::format("tensors in the checkpoint's headers: {}", fmt::join(counts, ", "));
    }
    // Without a head of its own the embedding is one: it is read whole where a token is to be chosen.
    PartSize& embedding = model_.part(Part::kEmbedding);
    PartSize& head = model_.part(Part::kHead);
    if (head.bytes == 0 && embedding.bytes > 0) {
      std::swap(head, embedding);
      head.source += "; the embedding is the output head too";
    }
    model_.precision = precision();
  }

 private:
  std::string precision() const {
    const auto most = std::max_element(bytes_by_type_.begin(), bytes_by_type_.end(),
                                       [](const auto& a, const auto& b) { return a.second < b.second; });
    if (most == bytes_by_type_.end()) return "unknown";
    if (most->first == "U8" || most->first == "I8") return has_nvfp4_scales_ ? "NVFP4" : "FP4";
    if (most->first == "I32" || most->first == "U32") return "INT4";
    if (most->first.starts_with("F8_")) return "FP8";
    std::string name = most->first;  // in GGUF files lower-case
    std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::toupper(c); });
    return name;
  }

  const TablePlaces& tables_;
  const std::uint32_t layers_;
  Model& model_;
  std::array<std::map<std::string, std::uint64_t>, kParts> tensors_;
  std::map<std::string, std::uint64_t> bytes_by_type_;  // without tables and scales
  bool has_nvfp4_scales_ = false;
};

/// Facts of one tensor after the other, of either kind of file.
using ForEach = std::function<void(const std::function<void(const TensorFacts&)>&)>;

std::uint32_t draft_layers_of(const ForEach& for_each, std::uint32_t layers) {
  constexpr std::size_t kDraftLayersMost = 100;
  std::set<std::uint32_t> found;
  bool has_any = false;
  for_each([&](const TensorFacts& tensor) {
    const Part part = part_of_tensor(tensor.name, layers);
    if (part != Part::kDraftDense && part != Part::kDraftExpert) return;
    has_any = true;
    const auto layer = draft_layer_of(tensor.name, layers);
    if (layer && found.size() < kDraftLayersMost) found.insert(*layer);
  });
  return std::max<std::uint32_t>(static_cast<std::uint32_t>(found.size()), has_any ? 1 : 0);
}

Result<void> add_shapes(const Checkpoint& checkpoint, ModelKeys& keys, Model& model) {
  for (const Table& table : checkpoint.tables()) {
    TableShape shape;
    shape.name = table.name;
    shape.layer = table.layer;
    shape.rows = table.rows;
    shape.row_bytes = table.row_bytes;
    shape.row_values = table.row_values;
    shape.components = static_cast<std::uint32_t>(table.components.size());
    shape.heads_per_order = table.bundle_rows;
    if (table.addressing) {
      shape.rows_per_token = static_cast<std::uint32_t>(table.addressing->rows_per_token());
      shape.heads_per_order = table.addressing->heads_per_order();
    } else {  // for want of a token map, without which the config still tells of the orders: 2 to this
      const std::uint32_t order = keys.need({"engram_max_ngram_size"}, 64);
      shape.rows_per_token = (std::max(order, 1U) - 1) * shape.heads_per_order;
    }
    model.tables.push_back(std::move(shape));
  }
  return keys.result();
}

Result<Model> model_of(const Checkpoint& checkpoint, ModelKeys& keys, const ForEach& for_each,
                       std::uint64_t vocabulary) {
  Model model;
  model.name = checkpoint.path();
  model.model_type = keys.model_type();
  model.family = checkpoint.family();
  model.format = checkpoint.format();
  model.source = fmt::format("headers of {}", checkpoint.path());
  model.is_measured = true;
  model.vocabulary = vocabulary;
  const std::uint32_t layers = keys.need_layers();
  if (auto known = keys.result(); !known) return known.error();
  if (auto added = add_layers(keys, draft_layers_of(for_each, layers), model); !added) return added.error();
  if (auto added = add_shapes(checkpoint, keys, model); !added) return added.error();
  const TablePlaces places(checkpoint.tables());
  PartSums sums(places, layers, model);
  for_each([&](const TensorFacts& tensor) { sums.add(tensor); });
  sums.finish();
  model.part(Part::kTable).parameters = 0;  // packed rows count as what they decode to
  for (const TableShape& table : model.tables) model.part(Part::kTable).parameters += table.rows * table.row_values;
  if (model.part(Part::kDraftExpert).bytes == 0) model.draft_experts = model.draft_experts_per_token = 0;
  return model;
}

Result<Model> model_of_gguf(const Checkpoint& checkpoint) {
  auto gguf = checkpoint::open_gguf(checkpoint.path(), io::open_file);
  if (!gguf) return gguf.error();
  if (checkpoint.model_type().empty()) {
    return make_error(ErrorCode::kUnsupported,
                      "{}: key 'general.architecture' is missing, and without it the model's layers are not known",
                      checkpoint.path());
  }
  GgufKeys keys(gguf->metadata, checkpoint.model_type());
  const auto for_each = [&](const std::function<void(const TensorFacts&)>& take) {
    for (const checkpoint::Tensor& tensor : gguf->tensors) {
      const std::uint64_t values = tensor.bytes / tensor.type->block_bytes * tensor.type->block_values;
      take({tensor.name, gguf->path_of(tensor), tensor.offset, tensor.bytes, values, tensor.type->name, 0});
    }
  };
  const auto tokens = gguf->metadata.array_size("tokenizer.ggml.tokens");
  return model_of(checkpoint, keys, for_each, tokens ? *tokens : 0);
}

Result<Model> model_of_safetensors(const Checkpoint& checkpoint) {
  auto files = checkpoint::open_safetensors(checkpoint.path(), io::Disk());
  if (!files) return files.error();
  if (files->config_path().empty()) {
    return make_error(ErrorCode::kUnsupported,
                      "{}: there is no config.json beside the files, without which the model's layers are not known",
                      checkpoint.path());
  }
  auto file = io::open_file(files->config_path());
  if (!file) return file.error();
  auto config = checkpoint::ModelConfig::read(**file);
  if (!config) return config.error();
  ConfigKeys keys(*config, checkpoint.model_type());
  const auto for_each = [&](const std::function<void(const TensorFacts&)>& take) {
    for (std::size_t i = 0; i < files->tensors().size(); ++i) {
      const checkpoint::SafetensorsTensor tensor = files->tensors()[i];
      const std::uint32_t bits = checkpoint::dtype_bits(tensor.dtype);
      const std::uint64_t values = bits == 0 ? 0 : tensor.bytes / bits * 8 + tensor.bytes % bits * 8 / bits;
      take({tensor.name, files->path_of(tensor), tensor.offset, tensor.bytes, values,
            checkpoint::dtype_name(tensor.dtype), tensor.shape.empty() ? 0 : tensor.shape.back()});
    }
  };
  return model_of(checkpoint, keys, for_each, 0);
}

/// What no model that computes anything can be.
Result<void> check_whole(const Model& model) {
  if (model.bytes_rest() == 0) {
    return make_error(ErrorCode::kMalformed, "{}: it holds no tensors of layers, so there is nothing to plan",
                      printable(model.name));
  }
  const bool keeps = std::any_of(model.attention.begin(), model.attention.end(),
                                 [](const Attention& group) { return group.values != 0; });
  if (!keeps && model.states.empty()) {
    return make_error(ErrorCode::kMalformed, "{}: its layers keep nothing: key-value heads or their width are 0",
                      printable(model.name));
  }
  return {};
}

}  // namespace

Result<Model> model_of_checkpoint(const std::string& path) {
  return without_throwing([&]() -> Result<Model> {
    auto checkpoint = Checkpoint::open(path);
    if (!checkpoint) return checkpoint.error();
    auto model = checkpoint->format() == "gguf" ? model_of_gguf(*checkpoint) : model_of_safetensors(*checkpoint);
    if (!model) return model;
    if (auto whole = check_whole(*model); !whole) return whole.error();
    return model;
  });
}

}  // namespace rowtide::sizing
