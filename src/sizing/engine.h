// Engines: what they can run, and what a step costs them beside memory and arithmetic (data/engines.json).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sizing/device.h"
#include "sizing/model.h"
#include "sizing/request.h"

namespace rowtide::sizing {

enum class EngineId : std::uint8_t { kLlamaCpp, kVllm, kSglang };
std::string_view engine_name(EngineId id);  // "llama.cpp", "vLLM", "SGLang"
std::string_view engine_key(EngineId id);   // "llama_cpp", "vllm", "sglang": as in the JSON and as --engine takes it

/// Fixed time a step takes beside memory traffic, as derived from a report.
struct StepOverhead {
  double ms = 0;
  std::string source;  // which report, and how it was derived
};

struct Engine {
  EngineId id = EngineId::kLlamaCpp;
  std::string version;              // that the facts are of
  std::uint64_t runtime_bytes = 0;  // device contexts, libraries, allocator slack; of each device
  std::string runtime_source;
  std::uint64_t graph_bytes = 0;  // scratch of captured graphs
  std::string graph_source;
  std::uint64_t host_bytes = 0;  // its processes on the host, of each rank
  std::string host_source;
};
const std::vector<Engine>& engines();
const Engine& engine(EngineId id);
/// By name or key, in any case. kUsage with the nearest.
Result<EngineId> engine_named(std::string_view name);

/// What reports are sorted by: the family of its tables, or "plain_dense", "plain_moe" without one.
std::string_view kind_of(const Model& model);

/// The overhead of a step on that device; of the nearest report where there is none of the very same, which the source
/// then says. `speculates`: of a step with drafts.
StepOverhead step_overhead(EngineId id, const Model& model, const Device& device, bool speculates);

/// Of a device's arithmetic peak, what prefill reaches: as in the device's data, unless reports of the engine with that
/// kind of model say otherwise.
struct ArithmeticShare {
  double share = 0;
  std::string source;
};
ArithmeticShare arithmetic_share(EngineId id, const Model& model, const Device& device);

/// One thing that an engine cannot do, with its source; empty if it can run the plan.
struct EngineLimit {
  std::string id;      // "llama-quantised-kv"
  std::string reason;  // one sentence: what, since which version, what to change
  std::string source;
};
/// Every limit that stands in the way of this combination.
std::vector<EngineLimit> limits_in_the_way(EngineId id, const Request& request, Placement placement);

}  // namespace rowtide::sizing
