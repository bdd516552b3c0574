#include "sizing/layers.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace rowtide::sizing {
namespace {

/// Keys of layers that keep something of a kind not known here.
constexpr std::array<std::string_view, 9> kOtherStates = {
    "linear_attn_config", "mamba_d_state", "hybrid_override_pattern",
    "layers_block_type",  "mixer_types",   "conv_L_cache",
    "wkv_head_size",      "rwkv_version",  "attn_layer_period"};

bool has_delta_net(const ModelKeys& keys) {
  // GGUF files write the widths of all kinds of states under the same keys.
  constexpr std::array<std::string_view, 4> kGgufTypes = {"qwen3next", "qwen35", "qwen35moe", "qwen4exp"};
  return keys.has("linear_num_value_heads") &&
         (!keys.has("ssm_state_size") ||
          std::find(kGgufTypes.begin(), kGgufTypes.end(), keys.model_type()) != kGgufTypes.end());
}

void refuse_other_states(ModelKeys& keys) {
  constexpr std::string_view kMessage = "and tells of layers of a kind that is not known";
  for (const std::string_view name : kOtherStates) {
    if (keys.has(name)) keys.refuse(name, kMessage);
  }
  if (keys.has("ssm_state_size") && !has_delta_net(keys)) keys.refuse("ssm_state_size", kMessage);
}

void add_experts(ModelKeys& keys, Model& model) {
  model.experts = keys.get({"num_experts", "n_routed_experts", "num_local_experts", "moe_num_experts"}, 0);
  if (model.experts == 0) return;
  const std::uint32_t chosen = keys.need({"num_experts_per_tok", "moe_topk", "num_experts_per_token", "moe_top_k"});
  // Where some of those to choose from compute nothing, so many of the chosen do on average.
  const std::uint32_t idle = keys.get({"zero_expert_num"}, 0);
  model.experts_per_token =
      static_cast<std::uint32_t>(std::uint64_t{chosen} * model.experts / (std::uint64_t{model.experts} + idle));
  if (chosen == 0 || chosen > model.experts + idle) {
    keys.refuse("num_experts_per_tok", fmt::format("of {} experts", model.experts + idle));
  }
  model.expert_width =
      keys.get({"moe_intermediate_size", "expert_ffn_hidden_size", "intermediate_size", "ffn_hidden_size"}, 0);
  if (model.draft_layers == 0) return;
  model.draft_experts = keys.get({"dspark_n_routed_experts"}, model.experts);
  model.draft_experts_per_token = keys.get({"dspark_num_experts_per_tok"}, model.experts_per_token);
}

void add_common(ModelKeys& keys, std::optional<std::uint32_t> draft_layers, Model& model) {
  model.layers = keys.need_layers();
  model.hidden = keys.need({"hidden_size", "n_embd", "d_model", "dim"});
  model.streams = keys.get({"hc_count", "hc_mult"}, 1, 1'000);
  model.vocabulary = keys.tokens({"vocab_size"}, model.vocabulary);
  model.context_most = keys.tokens({"max_position_embeddings", "max_seq_len", "seq_length", "n_positions"}, 0);
  model.attention_heads = keys.need({"num_attention_heads", "n_head", "n_heads"});
  model.kv_heads = keys.get({"num_key_value_heads", "multi_query_group_num"}, model.attention_heads);
  model.draft_layers = keys.get({"mtp_num_hidden_layers", "num_nextn_predict_layers"}, 0, 100);
  if (draft_layers) model.draft_layers = *draft_layers;
  for (const auto& [value, name] : {std::pair(std::uint64_t{model.layers}, "num_hidden_layers"),
                                    {model.hidden, "hidden_size"},
                                    {std::uint64_t{model.attention_heads}, "num_attention_heads"}}) {
    if (value == 0) keys.refuse(name, "which no model has");
  }
  add_experts(keys, model);
}

}  // namespace

void add_draft_attention(Attention group, Model& model) {
  if (model.draft_layers == 0) return;
  group.name += " of the draft module";
  group.layers = group.readers = model.draft_layers;
  group.of_draft = true;
  model.attention.push_back(std::move(group));
}

Result<void> add_layers(ModelKeys& keys, std::optional<std::uint32_t> draft_layers, Model& model) {
  add_common(keys, draft_layers, model);
  if (auto common = keys.result(); !common) return common;
  refuse_other_states(keys);
  if (keys.has("kv_lora_rank")) {
    add_latent_attention(keys, model);
  } else if (keys.has("compress_ratios") && !has_delta_net(keys)) {
    add_compressed_attention(keys, model);
  } else {
    add_ordinary_attention(keys, model);
  }
  return keys.result();
}

}  // namespace rowtide::sizing
