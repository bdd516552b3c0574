#include "sizing/choice.h"

#include <algorithm>
#include <tuple>

#include "sizing/ranks.h"

namespace rowtide::sizing {
namespace {

std::string refusal_of(const Request& request, Placement placement) {
  if (placement == Placement::kPinned && request.machine.device.is_unified) {
    return "host memory is the device's own here: pinning frees nothing, and its pages can never be given back";
  }
  if (placement == Placement::kRemote && !request.placement) {
    return "needs another machine's memory; asked for with --placement remote";
  }
  return "";
}

/// llama.cpp gives whole layers to devices, which work one after the other.
Request as_computed(const Request& request, EngineId engine) {
  if (engine != EngineId::kLlamaCpp || request.tp == 1) return request;
  return on_devices(request, request.dp, 1, 1);
}

bool loads_format(EngineId engine, const Model& model) {
  return (engine == EngineId::kLlamaCpp) == (model.format == "gguf");
}

Choice looked_at(const Request& request, EngineId id, std::optional<Placement> placement) {
  Choice choice;
  choice.layout = {id, placement};
  choice.loads = loads_format(id, request.model);
  choice.limits = limits_in_the_way(id, request, placement.value_or(Placement::kDevice));
  choice.memory = plan_memory(request, choice.layout);
  const Request computed = as_computed(request, id);
  choice.speed = estimate_speed(computed, id, nullptr);
  if (!placement) return choice;
  choice.refusal = refusal_of(request, *placement);
  choice.cost = table_cost(computed, id, *placement, choice.memory.cache_bytes, choice.speed);
  choice.speed = estimate_speed(computed, id, &choice.cost);
  return choice;
}

std::vector<std::optional<Placement>> placements_of(const Request& request) {
  if (request.model.tables.empty()) return {std::nullopt};
  std::vector<std::optional<Placement>> list;
  for (Placement placement : kPlacements) {
    if (!request.placement || *request.placement == placement) list.emplace_back(placement);
  }
  return list;
}

/// Lower is better.
std::tuple<int, std::size_t, std::uint64_t> rank(const Choice& choice) {
  const std::size_t placement = choice.layout.placement ? static_cast<std::size_t>(*choice.layout.placement) : 0;
  const std::uint64_t missing = choice.memory.missing_bytes;
  if (!choice.loads) return {5, (choice.fits() ? 0 : 100) + choice.limits.size(), missing};
  if (!choice.refusal.empty()) return {4, placement, missing};
  if (choice.fits() && choice.runs()) return {0, placement, 0};
  if (choice.runs() && missing < choice.memory.pools.front().capacity_bytes / 20) return {1, placement, missing};
  if (choice.fits()) return {2, 10 * choice.limits.size() + placement, 0};
  return {3, choice.limits.size(), missing};
}

}  // namespace

std::vector<Choice> choices_of(const Request& request) {
  std::vector<Choice> choices;
  for (const Engine& each : engines()) {
    if (request.engine && *request.engine != each.id) continue;
    for (const auto& placement : placements_of(request)) choices.push_back(looked_at(request, each.id, placement));
  }
  return choices;
}

const Choice& best_of(const std::vector<Choice>& choices) {
  return *std::min_element(choices.begin(), choices.end(),
                           [](const Choice& a, const Choice& b) { return rank(a) < rank(b); });
}

}  // namespace rowtide::sizing
