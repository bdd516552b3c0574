// Models that keep latents instead of keys and values: one for each layer and position (DeepSeek-V2 and later,
// LongCat), or one for several positions and layers (DeepSeek-V4 and V4.1).
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>

#include "sizing/layers.h"

namespace rowtide::sizing {

void add_latent_attention(ModelKeys& keys, Model& model) {
  model.kv_heads = 1;
  Attention group;
  group.kind = Attention::Kind::kLatent;
  group.name = "latent attention (MLA)";
  const std::uint32_t each = keys.model_type().starts_with("longcat") ? 2 : 1;  // attentions in a layer
  group.layers = group.readers = model.layers * each;
  group.values = keys.need({"kv_lora_rank"}) + keys.need({"qk_rope_head_dim"});
  if (keys.has("index_topk")) {
    group.kind = Attention::Kind::kSparse;
    group.name = "sparse latent attention (DSA)";
    group.index_values = keys.need({"index_head_dim"});
    group.attended_most = keys.get({"index_topk"}, 0);
  }
  model.attention.push_back(group);
  add_draft_attention(std::move(group), model);
}

namespace {

/// Layers that keep a latent of their own, ascending; those between them read the one before.
std::vector<std::uint64_t> sources(ModelKeys& keys, const std::vector<std::uint64_t>& ratios) {
  std::vector<std::uint64_t> sources = keys.numbers("kv_source_layer_ids");
  if (keys.has("kv_source_layer_ids")) {
    std::sort(sources.begin(), sources.end());
    if (std::adjacent_find(sources.begin(), sources.end()) != sources.end()) {
      keys.refuse("kv_source_layer_ids", "which names a layer twice");
    }
    return sources;
  }
  for (std::uint64_t layer = 0; layer < ratios.size(); ++layer) {
    if (ratios[layer] > 0) sources.push_back(layer);
  }
  return sources;
}

}  // namespace

void add_compressed_attention(ModelKeys& keys, Model& model) {
  model.kv_heads = 1;
  std::vector<std::uint64_t> ratios = keys.numbers("compress_ratios");
  if (ratios.size() < model.layers) {
    return keys.refuse("compress_ratios", fmt::format("which does not tell of all {} layers", model.layers));
  }
  ratios.resize(model.layers);  // those of the draft module, which has windows only, may stand behind
  const std::uint64_t values = keys.need({"head_dim"});
  // Latents that stand for many positions are few: they are read without an index.
  constexpr std::uint64_t kIndexedRatioMost = 4;
  std::map<std::uint64_t, Attention> groups;
  const std::vector<std::uint64_t> kept = sources(keys, ratios);
  for (std::size_t i = 0; i < kept.size(); ++i) {
    if (kept[i] >= model.layers || ratios[kept[i]] == 0) {
      return keys.refuse("kv_source_layer_ids", "which names a layer without compressed attention");
    }
    const std::uint64_t end = i + 1 < kept.size() ? kept[i + 1] : model.layers;
    Attention& group = groups[ratios[kept[i]]];
    group.layers += 1;
    group.readers += static_cast<std::uint32_t>(
        end - kept[i] -
        static_cast<std::uint64_t>(std::count(ratios.begin() + static_cast<std::ptrdiff_t>(kept[i]),
                                              ratios.begin() + static_cast<std::ptrdiff_t>(end), 0)));
  }
  for (auto& [ratio, group] : groups) {
    group.kind = Attention::Kind::kCompressed;
    group.name = fmt::format("compressed attention, {}",
                             ratio == 1 ? "a latent for each token" : fmt::format("a latent for {} tokens", ratio));
    group.values = values;
    group.ratio = static_cast<std::uint32_t>(ratio);
    if (ratio <= kIndexedRatioMost) {
      group.index_values = keys.need({"index_head_dim"});
      group.attended_most = keys.need({"index_topk"});
    }
    model.attention.push_back(group);
  }
  // The layers behind the last source of several make no latents: a prompt's tokens, but for the last, need none of
  // them.
  if (keys.has("kv_source_layer_ids") && kept.size() > 1) {
    model.prefill_share = static_cast<double>(kept.back()) / model.layers;
  }
  Attention windows;
  windows.kind = Attention::Kind::kWindow;
  windows.name = "sliding windows";
  windows.layers = windows.readers = model.layers;
  windows.values = values;
  windows.window = windows.attended_most = keys.tokens({"sliding_window"}, 0);
  if (windows.window == 0) return keys.refuse("sliding_window", "and without it the model's layers are not known");
  model.attention.push_back(windows);
  add_draft_attention(std::move(windows), model);
}

}  // namespace rowtide::sizing
