// A plan: the best choice, and all that is to be said of it.
#include "sizing/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sizing/choice.h"
#include "sizing/verdict.h"

namespace rowtide::sizing {
namespace {

/// The share of a device that the engine may take: its own terms and all that is left for keys and values.
double engine_fraction(const Plan& plan) {
  const Pool& pool = plan.pools.front();
  double host = 0;
  for (const PoolItem& item : pool.items) {
    if (item.name == "host reserve" || item.name == "table cache") host += static_cast<double>(item.bytes);
  }
  const double capacity = static_cast<double>(pool.capacity_bytes);
  const double most = plan.request.machine.device.is_unified ? (capacity - host) / capacity : 0.95;
  // A share that would eat the host's reserve is not passed on.
  return std::floor(std::min(most, plan.request.memory_fraction.value_or(1)) * 100) / 100;
}

RecipePlan recipe_plan(const Plan& plan) {
  RecipePlan fixed;
  fixed.placement = plan.placement.value_or(Placement::kDevice);
  fixed.cache_bytes = plan.cache_bytes;
  fixed.kv_pool_bytes = plan.kv.bytes;
  fixed.memory_fraction = engine_fraction(plan);
  const Pool& host = plan.request.machine.device.is_unified ? plan.pools.front() : plan.pools[1];
  std::uint64_t host_bytes = 0;
  for (const PoolItem& item : host.items) {
    if (item.name == "table cache" || item.name == "engine's host side" ||
        (!plan.request.machine.device.is_unified && item.name == "conditional-memory table") ||
        item.name == "rounding of pinned memory") {
      host_bytes += item.bytes;
    }
  }
  constexpr std::uint64_t kEngineSlack = std::uint64_t{8} << 30;  // what an engine's processes and its loading take
  fixed.container_memory_bytes = host_bytes + kEngineSlack;
  fixed.shared_memory_bytes =
      plan.placement == Placement::kPinned || plan.placement == Placement::kHost ? plan.request.table_bytes() : 0;
  return fixed;
}

void set_price(Plan& plan) {
  if (!plan.request.price_per_hour || plan.speed.decode_total_tok_s <= 0) return;
  plan.price_per_million_tokens = *plan.request.price_per_hour / 3600 / plan.speed.decode_total_tok_s * 1e6;
}

std::string model_argument(const Request& request) {
  if (request.model.is_measured) return request.model.name;
  return request.model.format == "gguf" ? "MODEL.gguf" : "MODEL";
}

void add_notes(Plan& plan) {
  const Request& request = plan.request;
  plan.notes = request.notes;
  const Model& model = request.model;
  const std::uint64_t drafts = model.part(Part::kDraftDense).bytes + model.part(Part::kDraftExpert).bytes;
  if (drafts != 0 && request.speculate == 0 && !request.weights) {
    plan.notes.push_back(
        fmt::format("the draft module's {} are counted, though nothing is drafted: an engine that leaves it out has as "
                    "much more room",
                    gib(static_cast<double>(drafts))));
  }
  if (plan.engine == EngineId::kLlamaCpp && request.tp > 1) {
    plan.notes.push_back(fmt::format(
        "llama.cpp gives whole layers to {} devices, which work one after the other: room for more, no more speed",
        request.tp));
  }
  if (plan.price_per_million_tokens) {
    plan.notes.push_back("the price is of decoded tokens at this number of sequences; prompts are not in it");
  }
}

void fill(Plan& plan, const Choice& chosen, const std::vector<Choice>& choices) {
  plan.engine = chosen.layout.engine;
  plan.placement = chosen.layout.placement;
  plan.fits = chosen.fits();
  plan.runs = chosen.runs();
  plan.missing_bytes = chosen.memory.missing_bytes;
  plan.pools = chosen.memory.pools;
  plan.kv = chosen.memory.kv;
  plan.cache_bytes = chosen.memory.cache_bytes;
  plan.memory_fraction_band = chosen.memory.memory_fraction_band;
  plan.table = chosen.cost;
  plan.speed = chosen.speed;
  plan.placement_reason = why_chosen(plan.request, chosen, choices);
  for (const Choice& choice : choices) {
    if (choice.layout.engine != plan.engine || !choice.layout.placement) continue;
    plan.candidates.push_back({*choice.layout.placement, choice.fits(), choice.runs(), choice.memory.missing_bytes,
                               reason_of(plan.request, choice), choice.cost});
  }
  plan.verdict = verdict_of(plan, chosen);
  plan.next_bottleneck = next_bottleneck_of(plan);
  plan.warnings = warnings_of(plan, chosen);
  set_price(plan);
  add_notes(plan);
  const RecipePlan fixed = recipe_plan(plan);
  for (const Engine& each : engines()) {
    plan.recipes.push_back(recipe(each.id, plan.request, fixed, model_argument(plan.request)));
  }
}

}  // namespace

Plan make_plan(const Request& request) {
  Plan plan;
  plan.request = request;
  const std::vector<Choice> choices = choices_of(request);
  fill(plan, best_of(choices), choices);
  return plan;
}

}  // namespace rowtide::sizing
