// The engines of data/engines.json: what they take, what a step costs them, what they cannot do.
#include <algorithm>
#include <cassert>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/nearest.h"
#include "base/printable.h"
#include "sizing/data.h"
#include "sizing/engine.h"
#include "sizing/plain_name.h"

namespace rowtide::sizing {
namespace {

using Json = nlohmann::json;

struct NamedEngine {
  Engine engine;
  std::vector<std::string> names;
};

struct OverheadReport {
  EngineId engine = EngineId::kLlamaCpp;
  std::vector<std::string> models, devices;  // kinds of models; the first device is the one of the report
  bool speculates = false;
  StepOverhead overhead;
};

struct Limit {
  std::vector<EngineId> engines;
  Json when;
  EngineLimit text;
};

struct ArithmeticReport {
  EngineId engine = EngineId::kLlamaCpp;
  std::vector<std::string> models, devices;
  ArithmeticShare share;
};

struct EngineData {
  std::vector<NamedEngine> engines;
  std::vector<OverheadReport> overheads;
  std::vector<ArithmeticReport> arithmetic;
  std::vector<Limit> limits;
};

EngineId id_of(const std::string& key) {
  for (const EngineId id : {EngineId::kLlamaCpp, EngineId::kVllm, EngineId::kSglang}) {
    if (engine_key(id) == key) return id;
  }
  assert(false && "an engine of data/engines.json that is none");
  return EngineId::kLlamaCpp;
}

NamedEngine engine_of(const Json& entry) {
  NamedEngine named;
  Engine& engine = named.engine;
  engine.id = id_of(entry.at("id"));
  engine.version = entry.at("version");
  engine.runtime_bytes = entry.at("runtime_bytes");
  engine.runtime_source = entry.at("runtime_source");
  engine.graph_bytes = entry.at("graph_bytes");
  engine.graph_source = entry.at("graph_source");
  engine.host_bytes = entry.at("host_bytes");
  engine.host_source = entry.at("host_source");
  named.names = entry.at("also").get<std::vector<std::string>>();
  named.names.emplace_back(engine_key(engine.id));
  named.names.emplace_back(engine_name(engine.id));
  return named;
}

EngineData parse_engines() {
  const Json all = Json::parse(data::engines);
  EngineData parsed;
  for (const Json& entry : all.at("engines")) parsed.engines.push_back(engine_of(entry));
  for (const Json& entry : all.at("step_overheads")) {
    parsed.overheads.push_back({id_of(entry.at("engine")),
                                entry.at("models"),
                                entry.at("devices"),
                                entry.at("speculates"),
                                {entry.at("ms"), entry.at("source")}});
  }
  for (const Json& entry : all.at("arithmetic_shares")) {
    parsed.arithmetic.push_back(
        {id_of(entry.at("engine")), entry.at("models"), entry.at("devices"), {entry.at("share"), entry.at("source")}});
  }
  for (const Json& entry : all.at("limits")) {
    Limit limit;
    for (const Json& key : entry.at("engines")) limit.engines.push_back(id_of(key));
    limit.when = entry.at("when");
    limit.text = {entry.at("id"), entry.at("reason"), entry.at("source")};
    parsed.limits.push_back(std::move(limit));
  }
  return parsed;
}

const EngineData& engine_data() {
  static const EngineData data = parse_engines();
  return data;
}

bool is_in(const std::vector<std::string>& list, std::string_view value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

bool is_plain(std::string_view kind) { return kind.starts_with("plain_"); }

constexpr int kSameKind = 16, kAlikeKind = 8, kSameDevice = 4, kSameMemory = 2, kSameDrafts = 1;

/// How near a report is to what is asked: the kind of model counts most, as a table's gather breaks captured graphs and
/// plain models have none; then the device or at least its kind, since fixed times of a machine with one memory and a
/// link between nodes are not those of a card; then whether it drafts.
int nearness(const OverheadReport& report, const Model& model, const Device& device, bool speculates) {
  const std::string_view kind = kind_of(model);
  const auto reported = known_device(report.devices.front());
  const bool same_memory = reported && reported->is_unified == device.is_unified;
  return (is_in(report.models, kind)                          ? kSameKind
          : is_plain(report.models.front()) == is_plain(kind) ? kAlikeKind
                                                              : 0) +
         (is_in(report.devices, device.id) ? kSameDevice + kSameMemory
          : same_memory                    ? kSameMemory
                                           : 0) +
         (report.speculates == speculates ? kSameDrafts : 0);
}

std::string as_of(const OverheadReport& report, int near) {
  if (near == kSameKind + kSameDevice + kSameMemory + kSameDrafts) return report.overhead.source;
  const auto device = known_device(report.devices.front());
  return fmt::format("estimate, as of the nearest report ({} on {}{}): {}", report.models.front(),
                     device ? device->name : report.devices.front(), report.speculates ? " with drafts" : "",
                     report.overhead.source);
}

/// How many of `ranks` get hash heads where whole ones go to each, as many to each but the last.
bool leaves_rank_without_heads(const Model& model, std::uint32_t ranks) {
  return std::any_of(model.tables.begin(), model.tables.end(), [&](const TableShape& table) {
    const std::uint32_t each = (table.rows_per_token + ranks - 1) / ranks;
    return each == 0 || (table.rows_per_token + each - 1) / each < ranks;
  });
}

bool holds(const Json& list, std::string_view value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

/// One condition of a limit.
bool applies(const std::string& name, const Json& value, const Request& request, Placement placement) {
  const Model& model = request.model;
  const Device& device = request.machine.device;
  if (name == "families") return holds(value, model.family);
  if (name == "formats") return holds(value, model.format);
  if (name == "precisions") {
    return std::any_of(value.begin(), value.end(), [&](const Json& precision) {
      return model.precision.starts_with(precision.get<std::string>());
    });
  }
  if (name == "kv") return holds(value, kv_type_name(request.kv));
  if (name == "states") return holds(value, state_type_name(request.state));
  if (name == "placements") return !model.tables.empty() && holds(value, placement_name(placement));
  if (name == "devices") return holds(value, device.id);
  if (name == "unified") return value == device.is_unified;
  if (name == "peers_memory") return value == device.has_peers_memory;
  if (name == "has_table") return value == !model.tables.empty();
  if (name == "has_typed_state") {
    return value == std::any_of(model.states.begin(), model.states.end(),
                                [](const State& state) { return state.value_bytes == 0; });
  }
  if (name == "tp_above") return request.tp > value.get<std::uint32_t>();
  if (name == "sequences_above") {
    return (request.concurrency + request.dp - 1) / request.dp > value.get<std::uint32_t>();
  }
  if (name == "nodes_above") return request.nodes > value.get<std::uint32_t>();
  if (name == "rank_without_heads") return value == leaves_rank_without_heads(model, request.tp);
  assert(false && "a condition of data/engines.json that is none");
  return false;
}

}  // namespace

std::string_view engine_name(EngineId id) {
  switch (id) {
    case EngineId::kLlamaCpp: return "llama.cpp";
    case EngineId::kVllm: return "vLLM";
    case EngineId::kSglang: return "SGLang";
  }
  return "";
}

std::string_view engine_key(EngineId id) {
  switch (id) {
    case EngineId::kLlamaCpp: return "llama_cpp";
    case EngineId::kVllm: return "vllm";
    case EngineId::kSglang: return "sglang";
  }
  return "";
}

const std::vector<Engine>& engines() {
  static const std::vector<Engine> all = [] {
    std::vector<Engine> list;
    for (const NamedEngine& named : engine_data().engines) list.push_back(named.engine);
    return list;
  }();
  return all;
}

const Engine& engine(EngineId id) {
  const std::vector<Engine>& all = engines();
  return *std::find_if(all.begin(), all.end(), [&](const Engine& each) { return each.id == id; });
}

Result<EngineId> engine_named(std::string_view name) {
  const std::string plain = plain_name(name);
  std::vector<std::string> keys;
  for (const NamedEngine& named : engine_data().engines) {
    for (const std::string& each : named.names) {
      if (plain_name(each) == plain) return named.engine.id;
    }
    keys.emplace_back(engine_key(named.engine.id));
  }
  return make_error(ErrorCode::kUsage, "no engine '{}' is known{}; known are {}", printable(name),
                    suggestion(hyphenated(name), keys), fmt::join(keys, ", "));
}

std::string_view kind_of(const Model& model) {
  if (!model.tables.empty()) return model.family;
  return model.experts > 0 ? "plain_moe" : "plain_dense";
}

StepOverhead step_overhead(EngineId id, const Model& model, const Device& device, bool speculates) {
  const OverheadReport* best = nullptr;
  int best_near = -1;
  for (const OverheadReport& report : engine_data().overheads) {
    const int near = nearness(report, model, device, speculates);
    if (report.engine != id || near <= best_near) continue;
    best = &report;
    best_near = near;
  }
  if (best == nullptr) return {};
  return {best->overhead.ms, as_of(*best, best_near)};
}

ArithmeticShare arithmetic_share(EngineId id, const Model& model, const Device& device) {
  for (const ArithmeticReport& report : engine_data().arithmetic) {
    if (report.engine == id && is_in(report.models, kind_of(model)) && is_in(report.devices, device.id)) {
      return report.share;
    }
  }
  return {device.compute_share, device.compute_share_source};
}

std::vector<EngineLimit> limits_in_the_way(EngineId id, const Request& request, Placement placement) {
  std::vector<EngineLimit> found;
  for (const Limit& limit : engine_data().limits) {
    if (std::find(limit.engines.begin(), limit.engines.end(), id) == limit.engines.end()) continue;
    bool all = true;
    for (const auto& [name, value] : limit.when.items()) all = all && applies(name, value, request, placement);
    if (all) found.push_back(limit.text);
  }
  return found;
}

}  // namespace rowtide::sizing
