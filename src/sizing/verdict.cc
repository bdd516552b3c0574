#include "sizing/verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "base/grouped.h"
#include "base/printable.h"

namespace rowtide::sizing {
namespace {

constexpr double kNarrow = 0.15;  // of a band of memory fractions: published recipes failed within such a one
constexpr std::uint32_t kDraftsToTry = 3;

std::string gb_and_gib(double bytes) { return fmt::format("{:.1f} GB ({})", bytes / 1e9, gib(bytes)); }

/// Weights and table against the memory they are to lie in, before anything else.
std::string short_before_kv(const Choice& chosen) {
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
  if (model.is_measured) return without_controls(model.name);
  return model.precision.empty() ? model.name : fmt::format("{} {}", model.name, model.precision);
}

/// " Room is short." of "room is short"; nothing of nothing.
std::string sentence(std::string words) {
  if (words.empty()) return "";
  words.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(words.front())));
  return " " + words + ".";
}

std::string what_to_change(const Plan& plan) {
  const auto works = remedies(plan.request);
  if (!works.empty()) return fmt::format("What fits: {}.", fmt::join(works, ", or "));
  return fmt::format("No one change here makes it fit: it takes {} less of weights, or other devices.",
                     gib(static_cast<double>(plan.missing_bytes)));
}

/// "; with --speculate 3 it would be 30.3", where the model can draft and is faster so.
std::string with_drafts(const Plan& plan) {
  if (plan.request.speculate > 0 || plan.request.model.draft_layers == 0) return "";
  Request drafting = plan.request;
  drafting.speculate = kDraftsToTry;
  drafting.draft_vocabulary = drafting.model.vocabulary;
  drafting.engine = plan.engine;
  drafting.placement = plan.placement;
  const auto choices = choices_of(drafting);
  const Choice& best = best_of(choices);
  if (!best.fits() || !best.runs() || best.speed.decode_tok_s <= plan.speed.decode_tok_s) return "";
  return fmt::format("; with --speculate {} it would be {:.1f}", kDraftsToTry, best.speed.decode_tok_s);
}

void add_memory_warnings(const Plan& plan, std::vector<std::string>& warnings) {
  const Request& request = plan.request;
  const Device& device = request.machine.device;
  if (device.is_unified && request.host_reserve < device.host_reserve_bytes) {
    warnings.push_back(fmt::format("the host reserve of {} is less than {}: {}",
                                   gib(static_cast<double>(request.host_reserve)),
                                   gib(static_cast<double>(device.host_reserve_bytes)), device.host_reserve_reason));
  }
  const auto& band = plan.memory_fraction_band;
  const bool concerns = plan.fits || request.memory_fraction.has_value();
  if (concerns && plan.engine != EngineId::kLlamaCpp && band && band->second - band->first < kNarrow) {
    warnings.push_back(fmt::format(
        "narrow: the engine's share of the memory works between {:.2f} and {:.2f}; below it the context does not fit, "
        "above it the host's reserve is gone",
        band->first, band->second));
  }
}

void add_speed_warnings(const Plan& plan, std::vector<std::string>& warnings) {
  const Request& request = plan.request;
  if (plan.placement && plan.table.limit_share_decode > 1) {
    warnings.push_back(
        fmt::format("decode needs {:.0f} times the rows that drive or link can bring", plan.table.limit_share_decode));
  }
  if (plan.placement && plan.table.limit_share_prefill > 1) {
    warnings.push_back("prefill is slowed by the table: " + plan.table.bottleneck);
  }
  if (!plan.fits) return;
  if (plan.speed.ttft_ms > request.target_ttft_ms) {
    warnings.push_back(fmt::format("the first token of a prompt of {} is estimated at {} ms, the target is {:g}",
                                   grouped(request.prompt), grouped(static_cast<std::uint64_t>(plan.speed.ttft_ms)),
                                   request.target_ttft_ms));
  }
  if (plan.speed.decode_tok_s < request.target_tok_s) {
    warnings.push_back(fmt::format("a stream is estimated at {:.1f} tok/s, the target is {:g}{}",
                                   plan.speed.decode_tok_s, request.target_tok_s, with_drafts(plan)));
  }
}

}  // namespace

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

std::string reason_of(const Request& request, const Choice& choice) {
  if (!choice.refusal.empty()) return choice.refusal;
  if (choice.memory.missing_bytes > 0) {
    return fmt::format("{} short", gib(static_cast<double>(choice.memory.missing_bytes)));
  }
  if (!choice.limits.empty()) return choice.limits.front().reason;
  const bool keeps_up = choice.cost.limit_share_decode <= 1 && choice.cost.limit_share_prefill <= 1;
  const std::string free = gib(static_cast<double>(choice.memory.pools.front().free_bytes()));
  if (!keeps_up) return fmt::format("fits, {} left, but slow: {}", free, choice.cost.bottleneck);
  return fmt::format("fits, {} left {}", free,
                     request.machine.device.is_unified ? "in unified memory" : "on the device");
}

std::string why_chosen(const Request& request, const Choice& chosen, const std::vector<Choice>& choices) {
  if (!chosen.layout.placement) return "";
  if (request.placement) return "asked for";
  if (*chosen.layout.placement == Placement::kDevice) return "it fits, and nothing is faster";
  std::vector<std::string> out;
  for (const Choice& other : choices) {
    if (!other.layout.placement || *other.layout.placement >= *chosen.layout.placement) continue;
    if (other.layout.engine != chosen.layout.engine) continue;
    out.push_back(fmt::format("{}: {}", placement_name(*other.layout.placement), reason_of(request, other)));
  }
  return out.empty() ? "nothing nearer to the device runs on this engine" : fmt::format("{}", fmt::join(out, "; "));
}

std::string verdict_of(const Plan& plan, const Choice& chosen) {
  const Request& request = plan.request;
  const std::string what = fmt::format("{} on {}", model_text(request.model), machine_text(request));
  if (!chosen.refusal.empty()) return fmt::format("{} cannot be placed as asked: {}.", what, chosen.refusal);
  const std::string table = chosen.layout.placement
                                ? ", its table " + placement_text(*chosen.layout.placement, request.machine.device)
                                : std::string();
  if (!plan.fits) {
    return fmt::format("{} does not fit{}: {} are missing.{}{} {}", what, table,
                       gb_and_gib(static_cast<double>(plan.missing_bytes)), short_before_kv(chosen),
                       sentence(chosen.memory.shortage), what_to_change(plan));
  }
  const std::string room =
      fmt::format("{} fits{}, with room for {} tokens, or {} {} of {}", what, table,
                  grouped(plan.kv.tokens * request.dp), grouped(plan.kv.concurrency_most),
                  plan.kv.concurrency_most == 1 ? "sequence" : "sequences", grouped(request.context));
  if (plan.runs) return room + ".";
  const std::string but =
      fmt::format("{}; but {} cannot run it so: {}.", room, engine_name(plan.engine), chosen.limits.front().reason);
  const auto works = remedies(request);
  return works.empty() ? but : fmt::format("{} What runs: {}.", but, fmt::join(works, ", or "));
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

std::vector<std::string> warnings_of(const Plan& plan, const Choice& chosen) {
  std::vector<std::string> warnings = chosen.memory.warnings;
  add_memory_warnings(plan, warnings);
  add_speed_warnings(plan, warnings);
  return warnings;
}

}  // namespace rowtide::sizing
