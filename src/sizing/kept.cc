// What a token and a sequence keep: KV cache, windows, recurrent states.
#include <fmt/format.h>

#include <algorithm>

#include "sizing/model.h"

namespace rowtide::sizing {
namespace {

constexpr std::uint32_t kIndexBytes = 2;  // engines keep index keys as they come, in bf16, whatever the KV type

/// How many of `ranks` share what is split over `parts`: a part cannot be split further, so more ranks keep copies.
double split(std::uint32_t parts, std::uint32_t ranks) { return std::min(parts, ranks); }

std::string shared_by(double ranks) { return ranks > 1 ? fmt::format(" / {} ranks", ranks) : ""; }

}  // namespace

double kv_value_bytes(KvType type) {
  switch (type) {
    case KvType::kF16:
    case KvType::kBf16: return 2;
    case KvType::kFp8: return 1;
    case KvType::kQ8_0: return 34.0 / 32.0;
  }
  return 0;
}

std::vector<MemoryTerm> kv_terms(const Model& model, KvType type, bool speculate, std::uint32_t ranks) {
  std::vector<MemoryTerm> terms;
  for (const Attention& group : model.attention) {
    if (group.kind == Attention::Kind::kWindow || (group.of_draft && !speculate)) continue;
    const double ranks_sharing = split(group.kv_heads, ranks);
    const double value_bytes = kv_value_bytes(type);
    const std::string per = group.ratio > 1 ? fmt::format(" / {} tokens", group.ratio) : "";
    terms.push_back({fmt::format("keys and values, {}", group.name),
                     static_cast<double>(group.layers * group.values) * value_bytes / group.ratio / ranks_sharing,
                     fmt::format("{} layers x {} values x {:g} B{}{}", group.layers, group.values, value_bytes, per,
                                 shared_by(ranks_sharing))});
    if (group.index_values == 0) continue;
    terms.push_back(
        {fmt::format("index keys, {}", group.name),
         static_cast<double>(group.layers * group.index_values * kIndexBytes) / group.ratio,
         fmt::format("{} layers x {} values x {} B{}", group.layers, group.index_values, kIndexBytes, per)});
  }
  return terms;
}

namespace {

/// llama.cpp, the engine of GGUF files, keeps every state in f32; the others only what they are asked to.
std::uint32_t state_value_bytes(const Model& model, const State& state, StateType type) {
  if (model.format == "gguf") return 4;
  if (state.value_bytes != 0) return state.value_bytes;
  return type == StateType::kF32 ? 4 : 2;
}

}  // namespace

std::vector<MemoryTerm> state_terms(const Model& model, KvType kv, StateType type, std::uint32_t speculate,
                                    std::uint32_t ranks) {
  std::vector<MemoryTerm> terms;
  for (const State& state : model.states) {
    const std::uint32_t value_bytes = state_value_bytes(model, state, type);
    const double ranks_sharing = split(state.heads, ranks);
    const std::uint64_t copies = state.copied_per_draft ? 1 + std::uint64_t{speculate} : 1;
    const std::uint64_t values = state.values * copies + state.draft_values * speculate;
    std::string formula = fmt::format("{} layers x {} values x {} B", state.layers, values, value_bytes);
    if (speculate > 0 && values != state.values) formula += fmt::format(" (for {} drafted tokens)", speculate);
    terms.push_back({state.name, static_cast<double>(state.layers * values * value_bytes) / ranks_sharing,
                     formula + shared_by(ranks_sharing)});
  }
  for (const Attention& group : model.attention) {
    if (group.kind != Attention::Kind::kWindow || (group.of_draft && speculate == 0)) continue;
    const double ranks_sharing = split(group.kv_heads, ranks);
    const double value_bytes = kv_value_bytes(kv);
    terms.push_back({fmt::format("keys and values, {}", group.name),
                     static_cast<double>(group.layers * group.values) * static_cast<double>(group.window) *
                         value_bytes / ranks_sharing,
                     fmt::format("{} layers x {} positions x {} values x {:g} B{}", group.layers, group.window,
                                 group.values, value_bytes, shared_by(ranks_sharing))});
  }
  return terms;
}

namespace {

double sum(const std::vector<MemoryTerm>& terms) {
  double bytes = 0;
  for (const MemoryTerm& term : terms) bytes += term.bytes;
  return bytes;
}

}  // namespace

double kv_bytes_per_token(const Model& model, KvType type, bool speculate, std::uint32_t ranks) {
  return sum(kv_terms(model, type, speculate, ranks));
}

double state_bytes_per_sequence(const Model& model, KvType kv, StateType type, std::uint32_t speculate,
                                std::uint32_t ranks) {
  return sum(state_terms(model, kv, type, speculate, ranks));
}

}  // namespace rowtide::sizing
