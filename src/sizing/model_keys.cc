#include "sizing/model_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/error.h"

namespace rowtide::sizing {

void ModelKeys::remember(Error error) {
  if (!failure_) failure_ = std::move(error);
}

template <class T>
T ModelKeys::kept(Result<T> result) {
  if (result) return *std::move(result);
  remember(std::move(result).error());
  return T();
}

std::uint32_t ModelKeys::need(Names names, std::uint64_t most) {
  for (const std::string_view name : names) {
    if (has(name)) return get({name}, 0, most);
  }
  refuse(*names.begin(), "and without it the model's layers are not known");
  return 0;
}

std::uint32_t ModelKeys::get(Names names, std::uint64_t otherwise, std::uint64_t most) {
  for (const std::string_view name : names) {
    if (!has(name)) continue;
    const std::optional<std::uint64_t> number = kept(find_number(name));
    if (!number) continue;
    if (*number > most) {
      remember(error(ErrorCode::kMalformed, name, fmt::format("more than {}, which no model has", most)));
      return 0;
    }
    return static_cast<std::uint32_t>(*number);
  }
  return static_cast<std::uint32_t>(otherwise);
}

std::uint64_t ModelKeys::tokens(Names names, std::uint64_t otherwise) { return get(names, otherwise, kTokensMax - 1); }

std::vector<std::uint64_t> ModelKeys::numbers(std::string_view name) {
  std::vector<std::uint64_t> numbers = has(name) ? kept(find_numbers(name)) : std::vector<std::uint64_t>();
  if (std::any_of(numbers.begin(), numbers.end(), [](std::uint64_t number) { return number > kNumberMax; })) {
    remember(error(ErrorCode::kMalformed, name, fmt::format("a number above {}, which no model has", kNumberMax)));
    numbers.clear();
  }
  return numbers;
}

std::vector<std::string> ModelKeys::texts(std::string_view name) {
  return has(name) ? kept(find_texts(name)) : std::vector<std::string>();
}

bool ModelKeys::flag(std::string_view name) { return has(name) && kept(find_flag(name)); }

void ModelKeys::refuse(std::string_view name, std::string_view message) {
  remember(error(ErrorCode::kUnsupported, name, message));
}

Result<void> ModelKeys::result() const { return failure_ ? Result<void>(*failure_) : Result<void>(); }

Result<std::optional<std::uint64_t>> ConfigKeys::find_number(std::string_view name) const {
  return config_.integer<std::uint64_t>(name);
}

Result<std::vector<std::uint64_t>> ConfigKeys::find_numbers(std::string_view name) const {
  auto numbers = config_.integers<std::uint64_t>(name);
  if (!numbers) return numbers.error();
  return (*numbers).value_or(std::vector<std::uint64_t>());
}

Result<std::vector<std::string>> ConfigKeys::find_texts(std::string_view name) const {
  auto texts = config_.texts(name);
  if (!texts) return texts.error();
  return (*texts).value_or(std::vector<std::string>());
}

Result<bool> ConfigKeys::find_flag(std::string_view name) const {
  auto value = config_.boolean(name);
  if (!value) return value.error();
  return (*value).value_or(false);
}

Error ConfigKeys::error(ErrorCode code, std::string_view name, std::string_view message) const {
  return config_.error(code, name, message);
}

namespace {

struct GgufName {
  std::string_view name;  // in a config.json
  std::string_view key;   // behind the architecture's
};

constexpr std::array kGgufNames = {
    GgufName{"num_hidden_layers", "block_count"},
    GgufName{"hidden_size", "embedding_length"},
    GgufName{"vocab_size", "vocab_size"},
    GgufName{"max_position_embeddings", "context_length"},
    GgufName{"num_attention_heads", "attention.head_count"},
    GgufName{"num_key_value_heads", "attention.head_count_kv"},
    GgufName{"head_dim", "attention.key_length"},
    GgufName{"v_head_dim", "attention.value_length"},
    GgufName{"swa_head_dim", "attention.key_length_swa"},
    GgufName{"swa_v_head_dim", "attention.value_length_swa"},
    GgufName{"sliding_window", "attention.sliding_window"},
    GgufName{"sliding_window_pattern", "attention.sliding_window_pattern"},
    GgufName{"num_kv_shared_layers", "attention.shared_kv_layers"},
    GgufName{"kv_lora_rank", "attention.kv_lora_rank"},
    GgufName{"qk_rope_head_dim", "rope.dimension_count"},
    GgufName{"num_experts", "expert_count"},
    GgufName{"num_experts_per_tok", "expert_used_count"},
    GgufName{"moe_intermediate_size", "expert_feed_forward_length"},
    GgufName{"num_nextn_predict_layers", "nextn_predict_layers"},
    GgufName{"hc_count", "hyper_connection.count"},
    GgufName{"indexer_head_dim", "attention.indexer.key_length"},
    GgufName{"indexer_budget", "attention.indexer.top_k"},
    GgufName{"index_head_dim", "attention.indexer.key_length"},
    GgufName{"index_topk", "attention.indexer.top_k"},
    GgufName{"compress_ratios", "attention.compress_ratios"},
    GgufName{"full_attention_interval", "full_attention_interval"},
    GgufName{"linear_num_key_heads", "ssm.group_count"},
    GgufName{"linear_num_value_heads", "ssm.time_step_rank"},
    GgufName{"linear_key_head_dim", "ssm.state_size"},
    GgufName{"linear_conv_kernel_dim", "ssm.conv_kernel"},
    GgufName{"linear_inner_size", "ssm.inner_size"},
    GgufName{"ssm_state_size", "ssm.state_size"},
    GgufName{"conv_L_cache", "shortconv.l_cache"},
    GgufName{"wkv_head_size", "wkv.head_size"},
    GgufName{"attention_chunk_size", "attention.chunk_size"},
    GgufName{"ple_layer_ids", "ple.layers"},
    GgufName{"ngram_size", "ple.ngram_size"},
    GgufName{"ple_conv_kernel_size", "ple.conv_kernel"},
};

constexpr std::string_view kDraftLayers = "num_nextn_predict_layers";

}  // namespace

std::string GgufKeys::key_of(std::string_view name) const {
  const auto found =
      std::find_if(kGgufNames.begin(), kGgufNames.end(), [&](const GgufName& each) { return each.name == name; });
  return found == kGgufNames.end() ? std::string() : fmt::format("{}.{}", model_type(), found->key);
}

bool GgufKeys::is_there(std::string_view name) const {
  const std::string key = key_of(name);
  return !key.empty() && metadata_.has(key);
}

/// Of a number for each layer the largest.
Result<std::optional<std::uint64_t>> GgufKeys::find_number(std::string_view name) const {
  auto numbers = find_numbers(name);
  if (!numbers) return numbers.error();
  std::optional<std::uint64_t> largest;
  for (const std::uint64_t number : *numbers) largest = std::max(largest.value_or(0), number);
  if (name != "num_hidden_layers" || !largest || !is_there(kDraftLayers)) return largest;
  // Here the blocks of a draft module count as the model's.
  auto draft = metadata_.integer(key_of(kDraftLayers));
  if (!draft) return draft.error();
  if (*draft >= *largest) {
    return error(ErrorCode::kMalformed, kDraftLayers, fmt::format("as many as the {} blocks, or more", *largest));
  }
  return std::optional<std::uint64_t>(*largest - *draft);
}

/// A number for all layers counts as a list of one, as in a config.json.
Result<std::vector<std::uint64_t>> GgufKeys::find_numbers(std::string_view name) const {
  const std::string key = key_of(name);
  if (metadata_.array_size(key)) return metadata_.integers(key);
  auto number = metadata_.integer(key);
  if (!number) return number.error();
  return std::vector<std::uint64_t>{*number};
}

Result<std::vector<std::string>> GgufKeys::find_texts(std::string_view) const { return std::vector<std::string>(); }

/// Flags are not kept of a GGUF file's metadata.
Result<bool> GgufKeys::find_flag(std::string_view) const { return false; }

Error GgufKeys::error(ErrorCode code, std::string_view name, std::string_view message) const {
  const std::string key = key_of(name);
  const std::string_view named = key.empty() ? name : std::string_view(key);
  return metadata_.error(code, named, fmt::format("{}{}", metadata_.has(named) ? "" : "is missing, ", message));
}

}  // namespace rowtide::sizing
