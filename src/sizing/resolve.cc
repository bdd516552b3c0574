// From what a person asks to a request that makes sense.
#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/printable.h"
#include "rowtide/byte_size.h"
#include "rowtide/store.h"
#include "sizing/anatomy.h"
#include "sizing/engine.h"
#include "sizing/ranks.h"
#include "sizing/request.h"

namespace rowtide::sizing {
namespace {

constexpr std::uint64_t kContextUnasked = 32'768;
constexpr std::uint64_t kPromptUnasked = 1'024;
constexpr std::uint64_t kOutputUnasked = 256;
constexpr std::uint32_t kChunkUnasked = 2'048;
constexpr std::uint64_t kHostReserveUnasked = std::uint64_t{8} << 30;

template <class... Args>
Error usage(fmt::format_string<Args...> format, Args&&... args) {
  return make_error(ErrorCode::kUsage, format, std::forward<Args>(args)...);
}

Result<Model> find_model(const PlanOptions& options) {
  if (!options.path.empty() && !options.model.empty()) {
    return usage("a checkpoint ({}) and --model {} contradict each other: give one of them", printable(options.path),
                 printable(options.model));
  }
  if (options.path.empty() && options.model.empty()) return usage("no model: give a checkpoint's path or --model NAME");
  if (!options.model.empty()) return known_model(options.model, options.precision);
  if (!options.precision.empty()) {
    return usage("--precision {} belongs to --model: a checkpoint has its own", printable(options.precision));
  }
  return model_of_checkpoint(options.path);
}

Result<Machine> find_machine(const PlanOptions& options) {
  if (options.this_machine && !options.device.empty()) {
    return usage("--device {} and --this-machine contradict each other: give one of them", printable(options.device));
  }
  if (options.this_machine) return this_machine(options.path.empty() ? "." : options.path);
  if (options.device.empty()) return usage("no machine: give --device NAME or --this-machine");
  const auto device = known_device(options.device);
  if (!device) return device.error();
  return machine_of(*device);
}

/// What options say of the machine in the data's stead.
Result<void> apply_measured(const PlanOptions& options, Machine& machine) {
  Device& device = machine.device;
  if (options.visible) device.visible_bytes = *options.visible;
  if (options.disk) machine.disk_free_bytes = options.disk;
  if (!options.host_memory) return {};
  if (device.is_unified) {
    return usage("--host-memory {}: {} has one memory for CPU and GPU; --visible says how much of it there is",
                 byte_size_text(*options.host_memory), device.name);
  }
  machine.host_memory_bytes = *options.host_memory;
  machine.host_available_bytes.reset();
  return {};
}

Result<void> set_ranks(const PlanOptions& options, Request& request) {
  const Device& device = request.machine.device;
  const std::uint32_t ranks = options.tp.value_or(1) * options.dp.value_or(1);
  request.devices = options.devices.value_or(std::max(ranks, options.nodes.value_or(1)));
  if (request.machine.is_this && request.devices > 1 && options.device.empty() &&
      device.devices_per_node < request.devices) {
    return usage("--devices {}: this machine has {}", request.devices, device.devices_per_node);
  }
  if (request.devices % options.dp.value_or(1) != 0) {
    return usage("--dp {} does not divide {} devices", *options.dp, request.devices);
  }
  request.dp = options.dp.value_or(options.tp ? std::max(1u, request.devices / *options.tp) : 1);
  request.ep = options.ep.value_or(1);
  request.tp = options.tp.value_or(widest_split(request.model, request.devices / request.dp, request.ep));
  if (!options.tp && !options.dp && request.tp < request.devices) {
    request.dp = request.devices / request.tp;
    request.notes.push_back(fmt::format("{} devices are planned as {} replicas of {}: --tp {} {}", request.devices,
                                        request.dp, request.tp, request.devices,
                                        why_not_split(request.model, request.devices, request.ep)));
  }
  if (request.tp * request.dp != request.devices) {
    return usage("--tp {} x --dp {} are {} ranks, but there are {} devices: give --devices {}", request.tp, request.dp,
                 request.tp * request.dp, request.devices, request.tp * request.dp);
  }
  const std::uint32_t per_node = std::max(1u, device.devices_per_node);
  request.nodes = options.nodes.value_or(fewest_nodes(request.devices, per_node));
  if (request.devices % request.nodes != 0) {
    return usage("--nodes {} do not share {} devices evenly", request.nodes, request.devices);
  }
  if (request.devices_per_node() > per_node) {
    return usage("--nodes {}: {} holds at most {} devices, so {} devices need {} nodes", request.nodes, device.name,
                 per_node, request.devices, (request.devices + per_node - 1) / per_node);
  }
  return {};
}

Result<void> check_ranks(Request& request) {
  const Model& model = request.model;
  if (request.ep > 1 && model.experts == 0) return usage("--ep {}: {} has no experts", request.ep, model.name);
  if (request.devices % request.ep != 0) {
    return usage("--ep {} does not divide {} devices", request.ep, request.devices);
  }
  if (request.ep > 1 && model.experts % request.ep != 0) {
    return usage("--ep {} does not divide the {} experts of {}", request.ep, model.experts, model.name);
  }
  if (const std::string reason = why_not_split(model, request.tp, request.ep); !reason.empty()) {
    return usage("--tp {} {} of {}; tp may be {}", request.tp, reason, model.name, splits_of(model, request.ep));
  }
  if (request.concurrency < request.dp) {
    request.notes.push_back(fmt::format("{} sequences keep only {} of {} replicas busy", request.concurrency,
                                        request.concurrency, request.dp));
  }
  return {};
}

Result<void> set_drafts(const PlanOptions& options, Request& request) {
  const Model& model = request.model;
  request.speculate = options.speculate;
  if (request.speculate > 0 && model.draft_layers == 0) {
    request.notes.push_back(fmt::format(
        "{} has no draft module here: {} tokens a step are drafted from the text itself (n-gram speculation), at no "
        "cost but the check",
        model.name, request.speculate));
  }
  request.draft_vocabulary = options.draft_vocabulary.value_or(model.vocabulary);
  if (!options.draft_vocabulary) return {};
  if (request.speculate == 0 || model.draft_layers == 0) {
    return usage(
        "--draft-vocabulary {}: nothing is drafted by a module here; it goes with --speculate and a model that has one",
        *options.draft_vocabulary);
  }
  if (*options.draft_vocabulary > model.vocabulary) {
    return usage("--draft-vocabulary {}: {} has {} tokens", *options.draft_vocabulary, model.name, model.vocabulary);
  }
  return {};
}

Result<void> set_load(const PlanOptions& options, Request& request) {
  const Model& model = request.model;
  const std::uint64_t most = model.context_most == 0 ? kContextUnasked : model.context_most;
  const std::uint64_t asked = options.prompt.value_or(0) + options.output.value_or(0);
  request.context = options.context.value_or(std::min(most, std::max(kContextUnasked, asked)));
  if (model.context_most != 0 && request.context > model.context_most) {
    return usage("--context {}: {} was made for {} tokens at most", request.context, model.name, model.context_most);
  }
  // What is not asked for follows the context.
  request.output = options.output.value_or(std::min(kOutputUnasked, (request.context + 3) / 4));
  const std::uint64_t beside = request.context - std::min(request.context, request.output);
  request.prompt = options.prompt.value_or(std::min(kPromptUnasked, std::max<std::uint64_t>(1, beside)));
  if (request.prompt + request.output > request.context) {
    return usage("a prompt of {} and an answer of {} do not fit in a context of {}: give --context {}, or less of them",
                 request.prompt, request.output, request.context, request.prompt + request.output);
  }
  request.concurrency = options.concurrency;
  request.chunk =
      options.chunk.value_or(static_cast<std::uint32_t>(std::min<std::uint64_t>(kChunkUnasked, request.context)));
  if (request.chunk > request.context) {
    return usage("--chunk {} is wider than the context of {}", request.chunk, request.context);
  }
  if (auto drafts = set_drafts(options, request); !drafts) return drafts;
  return {};
}

Result<void> set_types(const PlanOptions& options, Request& request) {
  const bool is_gguf = request.model.format == "gguf";
  request.kv = is_gguf ? KvType::kF16 : KvType::kBf16;
  for (KvType type : {KvType::kF16, KvType::kBf16, KvType::kFp8, KvType::kQ8_0}) {
    if (options.kv == kv_type_name(type)) request.kv = type;
  }
  request.state = options.state == state_type_name(StateType::kBf16) ? StateType::kBf16 : StateType::kF32;
  if (!options.engine.empty()) {
    const auto id = engine_named(options.engine);
    if (!id) return id.error();
    request.engine = *id;
  }
  for (Placement placement : kPlacements) {
    if (options.placement == placement_name(placement)) request.placement = placement;
  }
  if (request.placement && request.model.tables.empty()) {
    return usage("--placement {}: {} has no conditional-memory table", options.placement, request.model.name);
  }
  if (options.memory && request.model.tables.empty()) {
    return usage("--memory {}: {} has no conditional-memory table to cache", byte_size_text(*options.memory),
                 request.model.name);
  }
  if (options.memory && *options.memory < kMemoryBytesMin) {
    return usage("--memory {}: a table's cache has {} at least", byte_size_text(*options.memory),
                 byte_size_text(kMemoryBytesMin));
  }
  if (request.placement && *request.placement != Placement::kNvme && options.memory) {
    return usage("--memory is the cache of a table on NVMe; --placement {} needs none", options.placement);
  }
  return {};
}

Result<void> set_memory(const PlanOptions& options, Request& request) {
  const Device& device = request.machine.device;
  request.memory = options.memory;
  request.weights = options.weights;
  request.table = options.table;
  request.other = options.other;
  request.memory_fraction = options.memory_fraction;
  if ((options.decode_tok_s || options.prefill_tok_s) && request.model.tables.empty()) {
    return usage("--{} is what a table must keep up with; {} has none",
                 options.decode_tok_s ? "decode-tok-s" : "prefill-tok-s", request.model.name);
  }
  request.price_per_hour = options.price_per_hour;
  request.decode_tok_s = options.decode_tok_s;
  request.prefill_tok_s = options.prefill_tok_s;
  request.target_ttft_ms = options.target_ttft_ms;
  request.target_tok_s = options.target_tok_s;
  if (request.table && request.model.tables.empty()) {
    return usage("--table {}: {} has no conditional-memory table", byte_size_text(*request.table), request.model.name);
  }
  const std::uint64_t whole = device.is_unified ? device.visible_bytes : request.machine.host_memory_bytes;
  request.host_reserve = options.host_reserve.value_or(
      device.host_reserve_bytes != 0 ? device.host_reserve_bytes : std::min(kHostReserveUnasked, whole / 4));
  request.host_reserve_source = options.host_reserve                 ? "asked for"
                                : device.host_reserve_reason.empty() ? "what a system and an engine's host side take"
                                                                     : device.host_reserve_reason;
  if (options.host_reserve && *options.host_reserve >= whole) {
    return usage("--host-reserve {} leaves nothing of {}", byte_size_text(*options.host_reserve),
                 byte_size_text(whole));
  }
  return {};
}

}  // namespace

std::string_view placement_name(Placement placement) {
  switch (placement) {
    case Placement::kDevice: return "device";
    case Placement::kPinned: return "pinned";
    case Placement::kHost: return "host";
    case Placement::kNvme: return "nvme";
    case Placement::kRemote: return "remote";
  }
  return "";
}

Result<Request> resolve(const PlanOptions& options) {
  Request request;
  auto model = find_model(options);
  if (!model) return std::move(model).error();
  request.model = *std::move(model);
  auto machine = find_machine(options);
  if (!machine) return std::move(machine).error();
  request.machine = *std::move(machine);
  if (auto done = apply_measured(options, request.machine); !done) return done.error();
  if (auto done = set_ranks(options, request); !done) return done.error();
  if (auto done = check_ranks(request); !done) return done.error();
  if (auto done = set_load(options, request); !done) return done.error();
  if (auto done = set_types(options, request); !done) return done.error();
  if (auto done = set_memory(options, request); !done) return done.error();
  return request;
}

}  // namespace rowtide::sizing
