// Models that keep keys and values of heads (MHA, GQA), in some layers perhaps those of a window only, and those that
// have Gated DeltaNet instead in most layers.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <tuple>
#include <utility>

#include "sizing/layers.h"

namespace rowtide::sizing {
namespace {

enum class LayerKind : std::uint8_t { kFull, kWindow, kState };

// Beyond what any model has; they keep what a sequence takes within 64 bits.
constexpr std::uint64_t kKernelMost = 64;
constexpr std::uint64_t kStateValuesMost = std::uint64_t{1} << 32;

struct Kinds {
  std::vector<LayerKind> of_layer;
  std::uint64_t window = 0;
};

/// Every how many layers one attends to everything, for models whose files do not say it or say it in flags.
struct Interval {
  std::string_view model_type;
  std::uint32_t layers;
};
constexpr std::array kIntervals = {Interval{"gemma2", 2},  Interval{"gemma3", 6},  Interval{"gemma3_text", 6},
                                   Interval{"gemma3n", 5}, Interval{"gemma4", 6},  Interval{"cohere2", 4},
                                   Interval{"gpt-oss", 2}, Interval{"gpt_oss", 2}, Interval{"exaone4", 4},
                                   Interval{"olmo3", 4},   Interval{"llama4", 4},  Interval{"llama4_text", 4}};

std::vector<LayerKind> every(std::uint32_t interval, LayerKind others, std::uint32_t layers) {
  std::vector<LayerKind> kinds(layers, others);
  for (std::uint32_t layer = interval; layer <= layers; layer += interval) kinds[layer - 1] = LayerKind::kFull;
  return kinds;
}

LayerKind kind_named(const std::string& name, ModelKeys& keys) {
  if (name == "sliding_attention" || name == "chunked_attention") return LayerKind::kWindow;
  if (name == "linear_attention") return LayerKind::kState;
  if (name != "full_attention" && name != "attention" && name != "deepseek_sparse_attention" &&
      name != "qwen_sparse_attention") {
    keys.refuse("layer_types", "and tells of layers of a kind that is not known");
  }
  return LayerKind::kFull;
}

/// Of a model that has windows: which layers have one.
std::vector<LayerKind> windowed(ModelKeys& keys, std::uint32_t layers) {
  if (keys.has("no_rope_layers")) {  // Llama 4: layers with rotary positions attend to a chunk
    const std::vector<std::uint64_t> has_positions = keys.numbers("no_rope_layers");
    std::vector<LayerKind> kinds(layers, LayerKind::kFull);
    for (std::size_t i = 0; i < std::min(kinds.size(), has_positions.size()); ++i) {
      if (has_positions[i] != 0) kinds[i] = LayerKind::kWindow;
    }
    return kinds;
  }
  if (keys.has("use_sliding_window") && !keys.flag("use_sliding_window")) return every(1, LayerKind::kFull, layers);
  if (keys.has("use_sliding_window")) {  // Qwen2 and 3: the first layers have none
    std::vector<LayerKind> kinds(layers, LayerKind::kWindow);
    std::fill_n(kinds.begin(), std::min(layers, keys.get({"max_window_layers"}, layers)), LayerKind::kFull);
    return kinds;
  }
  const auto known = std::find_if(kIntervals.begin(), kIntervals.end(),
                                  [&](const Interval& each) { return each.model_type == keys.model_type(); });
  if (known != kIntervals.end()) return every(known->layers, LayerKind::kWindow, layers);
  const std::uint32_t interval = keys.get({"sliding_window_pattern"}, 0);
  return interval > 0 ? every(interval, LayerKind::kWindow, layers)
                      : std::vector<LayerKind>(layers, LayerKind::kWindow);
}

Kinds kinds_of(ModelKeys& keys, const Model& model) {
  Kinds kinds;
  kinds.window = keys.tokens({"sliding_window", "attention_chunk_size"}, 0);
  if (keys.has("layer_types")) {
    for (const std::string& name : keys.texts("layer_types")) kinds.of_layer.push_back(kind_named(name, keys));
    if (kinds.of_layer.size() != model.layers) {
      keys.refuse("layer_types", fmt::format("which does not tell of all {} layers", model.layers));
    }
  } else if (keys.has("full_attention_interval")) {
    const std::uint32_t interval = keys.get({"full_attention_interval"}, 1);
    if (interval == 0) keys.refuse("full_attention_interval", "which no model has");
    kinds.of_layer = every(std::max(interval, 1U), LayerKind::kState, model.layers);
  } else if (kinds.window > 0) {
    kinds.of_layer = windowed(keys, model.layers);
  }
  kinds.of_layer.resize(model.layers, LayerKind::kFull);
  if (kinds.window == 0 || (model.context_most > 0 && kinds.window >= model.context_most)) {
    std::replace(kinds.of_layer.begin(), kinds.of_layer.end(), LayerKind::kWindow, LayerKind::kFull);
  }
  return kinds;
}

void add_delta_net(ModelKeys& keys, std::uint32_t layers, Model& model) {
  const std::uint64_t key_heads = keys.need({"linear_num_key_heads"});
  const std::uint64_t value_heads = keys.need({"linear_num_value_heads"});
  const std::uint64_t key_width = keys.need({"linear_key_head_dim"});
  const std::uint64_t inner = keys.get({"linear_inner_size"}, 0);
  const std::uint64_t value_width =
      inner > 0 && value_heads > 0 ? inner / value_heads : keys.need({"linear_value_head_dim"});
  const std::uint64_t kernel = keys.need({"linear_conv_kernel_dim"}, kKernelMost);
  if (!keys.result()) return;
  const std::uint64_t channels = 2 * key_heads * key_width + value_heads * value_width;
  State state;
  state.name = "Gated DeltaNet states";
  state.layers = layers;
  state.values = value_heads * key_width * value_width;
  if (state.values > kStateValuesMost) {
    return keys.refuse("linear_num_value_heads",
                       fmt::format("and a layer's state of {} values no model has", state.values));
  }
  state.copied_per_draft = true;
  state.heads = static_cast<std::uint32_t>(key_heads);  // values' heads belong to keys' heads
  State tail;
  tail.name = "Gated DeltaNet convolutions";
  tail.layers = layers;
  tail.values = channels * (std::max<std::uint64_t>(kernel, 1) - 1);
  tail.value_bytes = 2;
  tail.draft_values = channels;
  tail.heads = state.heads;
  model.states.push_back(std::move(state));
  model.states.push_back(std::move(tail));
}

/// The n-gram module of Qwen3.8-Flash-Next ends in a convolution over positions n apart, in all streams.
void add_table_convolution(ModelKeys& keys, Model& model) {
  State state;
  state.name = "n-gram module's convolution";
  state.layers = static_cast<std::uint32_t>(keys.numbers("ple_layer_ids").size());
  if (state.layers == 0) return;
  const std::uint64_t kernel = keys.get({"ple_conv_kernel_size"}, 4, kKernelMost);
  state.draft_values = model.streams * model.hidden;
  state.values =
      (std::max<std::uint64_t>(kernel, 1) - 1) * keys.get({"ngram_size"}, 3, kKernelMost) * state.draft_values;
  state.value_bytes = 2;
  model.states.push_back(std::move(state));
}

/// QSA: index keys of all positions choose blocks, and those behind the last whole block are read too.
void make_sparse(ModelKeys& keys, Attention& group) {
  group.kind = Attention::Kind::kSparse;
  group.name = "sparse attention (QSA)";
  group.index_values = std::uint64_t{keys.get({"indexer_kv_heads"}, 1)} * keys.get({"indexer_head_dim"}, 0);
  std::uint32_t block = keys.get({"indexer_compress_ratio"}, 0);
  for (const std::uint64_t ratio : keys.numbers("compress_ratios")) {
    block = std::max(block, static_cast<std::uint32_t>(ratio));
  }
  group.attended_most = std::uint64_t{keys.get({"indexer_budget"}, 0)} + std::max(block, 1U) - 1;
}

}  // namespace

void add_ordinary_attention(ModelKeys& keys, Model& model) {
  const Kinds kinds = kinds_of(keys, model);
  const std::uint32_t width = keys.get({"head_dim", "attention_head_dim"}, model.hidden / model.attention_heads);
  const std::uint32_t value_width = keys.get({"v_head_dim"}, width);
  const std::uint32_t full_width = keys.get({"global_head_dim"}, width);
  const std::uint32_t full_value_width = keys.get({"global_head_dim"}, value_width);
  const std::uint32_t window_width = keys.get({"swa_head_dim"}, width);
  const std::uint32_t window_value_width =
      keys.get({"swa_v_head_dim"}, window_width == width ? value_width : window_width);
  std::vector<std::uint64_t> kv_heads = keys.numbers("num_key_value_heads");
  if (kv_heads.size() != model.layers) kv_heads.assign(model.layers, model.kv_heads);
  const std::uint32_t full_kv_heads = keys.get({"num_global_key_value_heads"}, 0);
  const std::uint32_t sharing = std::min(model.layers, keys.get({"num_kv_shared_layers"}, 0));

  std::map<std::pair<bool, std::uint64_t>, Attention> groups;  // by whether it is a window, and heads
  std::uint32_t state_layers = 0;
  for (std::uint32_t layer = 0; layer < model.layers; ++layer) {
    const bool is_window = kinds.of_layer[layer] == LayerKind::kWindow;
    const std::uint64_t heads = !is_window && full_kv_heads > 0 ? full_kv_heads : kv_heads[layer];
    if (kinds.of_layer[layer] == LayerKind::kState) {
      ++state_layers;
    } else if (heads > 0) {
      Attention& group = groups[{is_window, heads}];
      ++group.readers;
      if (layer < model.layers - sharing) ++group.layers;
      group.kind = is_window ? Attention::Kind::kWindow : Attention::Kind::kFull;
      group.values = heads * (is_window ? window_width + std::uint64_t{window_value_width}
                                        : full_width + std::uint64_t{full_value_width});
      group.kv_heads = static_cast<std::uint32_t>(heads);
    }
  }
  if (state_layers > 0) add_delta_net(keys, state_layers, model);
  for (auto& [key, group] : groups) {
    group.name = key.first ? "sliding windows" : "attention";
    if (key.first) group.window = group.attended_most = kinds.window;
    if (!key.first && keys.has("indexer_budget")) make_sparse(keys, group);
    model.attention.push_back(group);
  }
  if (!groups.empty()) add_draft_attention(groups.begin()->second, model);
  add_table_convolution(keys, model);
}

}  // namespace rowtide::sizing
