// Which engine, where the table, and the sentence that says so.
#include "sizing/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/grouped.h"
#include "sizing/memory_plan.h"

namespace rowtide::sizing {
namespace {

/// One layout, looked at.
struct Option {
  Layout layout;
  MemoryPlan memory;
  std::vector<EngineLimit> limits;
  TableCost cost;
  std::string refusal;  // why it is out whatever the memory

  bool runs() const { return limits.empty() && refusal.empty(); }
  bool fits() const { return refusal.empty() && memory.missing_bytes == 0; }
};

/// What speaks against a placement on any engine.
std::string refusal_of(const Request& request, Placement placement) {
  const Device& device = request.machine.device;
  if (placement == Placement::kPinned && device.is_unified) {
    return "host memory is the device's own here: pinning frees nothing, and its pages can never be given back";
  }
  if (placement == Placement::kRemote && !request.placement) {
    return "needs another machine's memory; asked for with --placement remote";
  }
  return "";
}

Option looked_at(const Request& request, EngineId id, std::optional<Placement> placement) {
  Option option;
  option.layout = {id, placement};
  option.limits = limits_in_the_way(id, request, placement.value_or(Placement::kDevice));
  option.memory = plan_memory(request, option.layout);
  if (!placement) return option;
  option.refusal = refusal_of(request, *placement);
  const Speed bare = estimate_speed(request, id, nullptr);
  option.cost = table_cost(request, id, *placement, option.memory.cache_bytes, bare);
  return option;
}

std::vector<std::optional<Placement>> placements_of(const Request& request) {
  if (request.model.tables.empty()) return {std::nullopt};
  std::vector<std::optional<Placement>> list;
  for (Placement placement : kPlacements) {
    if (!request.placement || *request.placement == placement) list.emplace_back(placement);
  }
  return list;
}

std::vector<EngineId> engines_of(const Request& request) {
  if (request.engine) return {*request.engine};
  std::vector<EngineId> ids;
  for (const Engine& each : engines()) ids.push_back(each.id);
  return ids;
}

/// Lower is better. What fits and runs comes first, the table nearest to the device before the others; then what fits
/// and would run but for an engine's limits, the fewest first; then what would run with more memory.
std::pair<std::size_t, std::uint64_t> rank(const Option& option) {
  const std::size_t placement = option.layout.placement ? static_cast<std::size_t>(*option.layout.placement) : 0;
  if (option.fits() && option.runs()) return {placement, 0};
  if (option.fits()) return {100 * option.limits.size() + placement, 0};
  if (option.runs()) return {10'000, option.memory.missing_bytes};
  return {20'000 + (option.refusal.empty() ? option.limits.size() : 10'000), option.memory.missing_bytes};
}

std::string placement_text(Placement placement, const Device& device) {
  switch (placement) {
    case Placement::kDevice: return device.is_unified ? "in unified memory" : "in device memory";
    case Placement::kPinned: return "in pinned host memory";
    case Placement::kHost: return device.is_unified ? "in unified memory, gathered by the CPU" : "in host memory";
    case Placement::kNvme: return "on NVMe";
    case Placement::kRemote: return "in another machine's memory";
  }
  return "";
}

std::string gb_and_gib(double bytes) { return fmt::format("{:.1f} GB ({})", bytes / 1e9, gib(bytes)); }

std::string reason_of(const Request& request, const Option& option) {
  if (!option.refusal.empty()) return option.refusal;
  if (option.memory.missing_bytes > 0) {
    return fmt::format("{} short; to change: {}", gib(static_cast<double>(option.memory.missing_bytes)),
                       option.memory.term_to_change);
  }
  if (!option.limits.empty()) return option.limits.front().reason;
  const bool kept_up = option.cost.limit_share_decode <= 1 && option.cost.limit_share_prefill <= 1;
  const std::string free = gib(static_cast<double>(option.memory.pools.front().free_bytes()));
  if (!kept_up) return fmt::format("fits, {} left, but slow: {}", free, option.cost.bottleneck);
  return fmt::format("fits, {} left {}", free,
                     request.machine.device.is_unified ? "in unified memory" : "on the device");
}

std::string why_chosen(const Plan& plan, const Option& chosen, const std::vector<Option>& options) {
  if (!chosen.layout.placement) return "";
  if (plan.request.placement) return "asked for";
  if (*chosen.layout.placement == Placement::kDevice) return "it fits, and nothing is faster";
  std::vector<std::string> out;
  for (const Option& other : options) {
    if (!other.layout.placement || *other.layout.placement >= *chosen.layout.placement) continue;
    if (other.layout.engine != chosen.layout.engine) continue;
    out.push_back(fmt::format("{}: {}", placement_name(*other.layout.placement), reason_of(plan.request, other)));
  }
  return out.empty() ? "nothing nearer to the device runs on this engine" : fmt::format("{}", fmt::join(out, "; "));
}

/// Weights and table against the memory they are to lie in, before anything else.
std::string short_before_kv(const Option& chosen) {
  const Pool& pool = chosen.memory.pools.front();
  double held = 0;
  for (const PoolItem& item : pool.items) {
    if (item.name == "activations" || item.name == "activations, runtime, graphs") break;
    held += static_cast<double>(item.bytes);
  }
  for (const PoolItem& item : pool.items) {
    if (item.name == "conditional-memory table") held += static_cast<double>(item.bytes);
  }
  const double capacity = static_cast<double>(pool.capacity_bytes);
  if (held <= capacity) return "";
  return fmt::format(
      " Weights{} alone are {} more than there is, before any keys and values.",
      chosen.layout.placement == Placement::kDevice || chosen.layout.placement == Placement::kHost ? " and table" : "",
      gb_and_gib(held - capacity));
}

std::string machine_text(const Request& request) {
  return request.devices == 1 ? request.machine.device.name
                              : fmt::format("{} x {}", request.devices, request.machine.device.name);
}

std::string model_text(const Model& model) {
  return model.precision.empty() || model.is_measured ? model.name : fmt::format("{} {}", model.name, model.precision);
}

std::string verdict_of(const Plan& plan, const Option& chosen) {
  const Request& request = plan.request;
  const std::string what = fmt::format("{} on {}", model_text(request.model), machine_text(request));
  if (!chosen.refusal.empty()) return fmt::format("{} cannot be placed as asked: {}.", what, chosen.refusal);
  const std::string table = chosen.layout.placement
                                ? ", its table " + placement_text(*chosen.layout.placement, request.machine.device)
                                : std::string();
  if (!plan.fits) {
    return fmt::format("{} does not fit{}: {} are missing.{} To change: {}.", what, table,
                       gb_and_gib(static_cast<double>(plan.missing_bytes)), short_before_kv(chosen),
                       chosen.memory.term_to_change);
  }
  const std::string room =
      fmt::format("{} fits{}, with room for {} tokens, or {} sequences of {}", what, table,
                  grouped(plan.kv.tokens * request.dp), grouped(plan.kv.concurrency_most), grouped(request.context));
  if (plan.runs) return room + ".";
  return fmt::format("{}; but {} cannot run it so: {}.", room, engine_name(plan.engine), chosen.limits.front().reason);
}

std::string next_bottleneck_of(const Plan& plan) {
  if (!plan.fits) return "";
  if (plan.placement && !plan.table.bottleneck.empty() &&
      std::max(plan.table.limit_share_decode, plan.table.limit_share_prefill) > 0.8) {
    return plan.table.bottleneck;
  }
  const auto longest = std::max_element(plan.speed.step.begin(), plan.speed.step.end(),
                                        [](const TimeTerm& a, const TimeTerm& b) { return a.ms < b.ms; });
  const std::string time = longest == plan.speed.step.end()
                               ? ""
                               : fmt::format("the longest term of a step: {}, {:.1f} ms", longest->name, longest->ms);
  const Pool& pool = plan.pools.front();
  if (pool.free_bytes() < pool.capacity_bytes / 20) {
    return fmt::format("memory: {} of {} free; {}", gib(static_cast<double>(pool.free_bytes())),
                       gib(static_cast<double>(pool.capacity_bytes)), time);
  }
  return time;
}

/// The share of a device that the engine may take: its own terms and all that is left for keys and values.
double engine_fraction(const Plan& plan) {
  if (plan.request.memory_fraction) return *plan.request.memory_fraction;
  const Pool& pool = plan.pools.front();
  double host = 0;
  for (const PoolItem& item : pool.items) {
    if (item.name == "host reserve" || item.name == "table cache") host += static_cast<double>(item.bytes);
  }
  const double capacity = static_cast<double>(pool.capacity_bytes);
  const double most = plan.request.machine.device.is_unified ? (capacity - host) / capacity : 0.95;
  return std::floor(most * 100) / 100;
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

void add_warnings(Plan& plan, const Option& chosen) {
  plan.warnings = chosen.memory.warnings;
  const Request& request = plan.request;
  if (plan.engine != EngineId::kLlamaCpp && plan.memory_fraction_band &&
      plan.memory_fraction_band->second - plan.memory_fraction_band->first < 0.15) {
    plan.warnings.push_back(fmt::format(
        "narrow: the engine's share of the memory works between {:.2f} and {:.2f}; below it the context does not fit, "
        "above it the host's reserve is gone",
        plan.memory_fraction_band->first, plan.memory_fraction_band->second));
  }
  if (plan.placement && plan.table.limit_share_prefill > 1) {
    plan.warnings.push_back("prefill is slowed by the table: " + plan.table.bottleneck);
  }
  if (plan.fits && plan.speed.ttft_ms > request.target_ttft_ms) {
    plan.warnings.push_back(
        fmt::format("the first token of a prompt of {} is estimated at {:.0f} ms, the target is {:.0f}", request.prompt,
                    plan.speed.ttft_ms, request.target_ttft_ms));
  }
  if (plan.fits && plan.speed.decode_tok_s < request.target_tok_s) {
    plan.warnings.push_back(fmt::format("a stream is estimated at {:.1f} tok/s, the target is {:g}",
                                        plan.speed.decode_tok_s, request.target_tok_s));
  }
}

void set_price(Plan& plan) {
  if (!plan.request.price_per_hour || plan.speed.decode_total_tok_s <= 0) return;
  plan.price_per_million_tokens = *plan.request.price_per_hour / 3600 / plan.speed.decode_total_tok_s * 1e6;
}

std::string model_argument(const Request& request) {
  if (request.model.is_measured) return request.model.name;
  return request.model.format == "gguf" ? "MODEL.gguf" : "MODEL";
}

void fill(Plan& plan, Option& chosen, const std::vector<Option>& options) {
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
  plan.speed = estimate_speed(plan.request, plan.engine, plan.placement ? &plan.table : nullptr);
  plan.placement_reason = why_chosen(plan, chosen, options);
  for (const Option& option : options) {
    if (option.layout.engine != plan.engine || !option.layout.placement) continue;
    plan.candidates.push_back({*option.layout.placement, option.fits() && option.runs(), option.memory.missing_bytes,
                               reason_of(plan.request, option), option.cost});
  }
  plan.verdict = verdict_of(plan, chosen);
  plan.next_bottleneck = next_bottleneck_of(plan);
  set_price(plan);
  add_warnings(plan, chosen);
  const RecipePlan fixed = recipe_plan(plan);
  for (const Engine& each : engines()) {
    plan.recipes.push_back(recipe(each.id, plan.request, fixed, model_argument(plan.request)));
  }
}

}  // namespace

Plan make_plan(const Request& request) {
  Plan plan;
  plan.request = request;
  plan.notes = request.notes;
  std::vector<Option> options;
  for (EngineId id : engines_of(request)) {
    for (const auto& placement : placements_of(request)) options.push_back(looked_at(request, id, placement));
  }
  auto best = std::min_element(options.begin(), options.end(),
                               [](const Option& a, const Option& b) { return rank(a) < rank(b); });
  Option chosen = *best;
  fill(plan, chosen, options);
  return plan;
}

}  // namespace rowtide::sizing
