#include "sizing/traffic.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace rowtide::sizing {
namespace {

constexpr double kIndexValueBytes = 2;
constexpr double kMostBytesOfFp4 = 0.8;  // of a value with its scales
constexpr double kActivationBytes = 2;   // of what ranks exchange: bf16

// Of Qwen3.8-Flash-Next on one GB10, steps of 4, 8, 16, 24 and 32 positions take 62.9, 76.4, 102.2, 124.7 and 141.4 ms
// (MiaAI-Lab/Qwen3.8-Flash-Next-Single-DGX-Spark:CHANGELOG.md, 2026-09-06). What of it is neither other traffic nor
// fixed time are the experts of 3.3, 6.8, 10.9, 14.7 and 17.2 positions that chose by themselves.
constexpr double kAlike = 0.85;

std::string gb(double bytes) { return fmt::format("{:.3g} GB", bytes / 1e9); }
std::string over(std::uint32_t ranks) { return ranks > 1 ? fmt::format(" / {} ranks", ranks) : ""; }

double bytes_of(const Request& request, Part part) { return static_cast<double>(request.model.part(part).bytes); }

/// A part that every position goes through, split over the ranks.
Traffic whole(const Request& request, Part part) {
  const double bytes = bytes_of(request, part);
  return {std::string(part_name(part)), bytes / request.tp, gb(bytes) + over(request.tp)};
}

/// Routed experts of `part`. With experts over more ranks than a replica has, they serve several replicas.
Traffic routed(const Request& request, Part part, double positions, std::uint32_t chosen, std::uint32_t experts) {
  const std::uint32_t ranks = std::max(request.tp, request.ep);
  const double served = positions * ranks / request.tp;
  const double share = union_share(served, chosen, experts);
  const double bytes = bytes_of(request, part);
  return {std::string(part_name(part)), bytes * share / ranks,
          fmt::format("{} x {:.3g} of the experts for {:g} positions{}", gb(bytes), share, served, over(ranks))};
}

/// Positions of a group that are kept after `length` tokens.
double kept(const Attention& group, double length) {
  const double all = length / std::max(group.ratio, 1u);
  return group.kind == Attention::Kind::kWindow ? std::min(all, static_cast<double>(group.window)) : all;
}

/// Of them, what `positions` positions of one stream read: each its own choice, where only the best are read.
double attended(const Attention& group, double length, double positions) {
  const double all = kept(group, length);
  return group.attended_most == 0 ? all : std::min(all, static_cast<double>(group.attended_most) * positions);
}

double ranks_sharing(std::uint32_t parts, std::uint32_t ranks) { return std::max(1u, std::min(parts, ranks)); }

/// What one stream reads and writes of a group.
double kv_bytes(const Request& request, const Attention& group, const Pass& pass) {
  const double row =
      static_cast<double>(group.values) * kv_value_bytes(request.kv) / ranks_sharing(group.kv_heads, request.tp);
  const double index_row = static_cast<double>(group.index_values) * kIndexValueBytes;
  const double written = pass.positions_each / std::max(group.ratio, 1u);
  const double readers = std::max(group.readers, group.layers);
  return readers * attended(group, pass.length, pass.positions_each) * row +
         group.layers * (written * (row + index_row) + kept(group, pass.length) * index_row);
}

double kv_bytes(const Request& request, const Pass& pass, bool of_draft) {
  double bytes = 0;
  for (const Attention& group : request.model.attention) {
    if (group.of_draft == of_draft) bytes += kv_bytes(request, group, pass);
  }
  return bytes * pass.streams;
}

/// Operations a second at the precision that a part's values are stored in, as far as device and engine compute in it.
double rate_of(const Request& request, EngineId engine, const PartSize& part) {
  const Device& device = request.machine.device;
  if (engine == EngineId::kLlamaCpp || part.parameters == 0) return device.flops_bf16;
  const double value_bytes = static_cast<double>(part.bytes) / static_cast<double>(part.parameters);
  if (value_bytes < kMostBytesOfFp4) return emulates_fp4(request) ? device.flops_bf16 : device.flops_fp4;
  if (value_bytes < 1.5 && device.flops_fp8 > 0) return device.flops_fp8;
  return device.flops_bf16;
}

/// Multiply-adds of attention for the pass, of all ranks: queries of all heads with keys, and with values.
double attention_operations(const Request& request, const Pass& pass) {
  double operations = 0;
  for (const Attention& group : request.model.attention) {
    if (group.of_draft) continue;
    // Of full attention half of the values are keys, of each KV head; a latent is key and value at once.
    const bool is_latent = group.kind == Attention::Kind::kLatent || group.kind == Attention::Kind::kCompressed;
    const double width = static_cast<double>(group.values) / (is_latent ? 1 : 2.0 * std::max(group.kv_heads, 1u));
    operations += 4 * std::max(group.readers, group.layers) * width * request.model.attention_heads *
                  attended(group, pass.length, 1);
  }
  return operations * pass.positions();
}

}  // namespace

bool emulates_fp4(const Request& request) {
  const Model& model = request.model;
  const bool has_fp4 = std::any_of(model.parts.begin(), model.parts.end() - 1, [](const PartSize& part) {
    return part.parameters != 0 &&
           static_cast<double>(part.bytes) < kMostBytesOfFp4 * static_cast<double>(part.parameters);
  });
  if (!has_fp4 || model.format == "gguf") return false;
  const Device& device = request.machine.device;
  return device.flops_fp4 == 0 || (!device.has_nvfp4 && model.precision.starts_with("NVFP4"));
}

double bytes_of(const std::vector<Traffic>& traffic) {
  double bytes = 0;
  for (const Traffic& each : traffic) bytes += each.bytes;
  return bytes;
}

double union_share(double positions, std::uint32_t chosen, std::uint32_t experts) {
  if (experts == 0 || chosen >= experts) return 1;
  return 1 - std::pow(1 - static_cast<double>(chosen) / experts, std::pow(std::max(positions, 1.0), kAlike));
}

std::vector<Traffic> weight_traffic(const Request& request, const Pass& pass) {
  const Model& model = request.model;
  std::vector<Traffic> traffic = {whole(request, Part::kDense)};
  if (model.part(Part::kSharedExpert).bytes > 0) traffic.push_back(whole(request, Part::kSharedExpert));
  if (model.experts > 0) {
    traffic.push_back(routed(request, Part::kRoutedExpert, pass.positions(), model.experts_per_token, model.experts));
  }
  traffic.push_back(whole(request, Part::kHead));
  const double row =
      bytes_of(request, Part::kEmbedding) / static_cast<double>(std::max<std::uint64_t>(model.vocabulary, 1));
  traffic.push_back({std::string(part_name(Part::kEmbedding)), row * pass.positions() / request.tp,
                     fmt::format("{:g} rows of {:.0f} B", pass.positions(), row)});
  return traffic;
}

Traffic kv_traffic(const Request& request, const Pass& pass) {
  return {"keys and values", kv_bytes(request, pass, false),
          fmt::format("{:g} sequences, {:.0f} tokens behind each", pass.streams, pass.length)};
}

Traffic state_traffic(const Request& request, const Pass& pass, std::uint32_t drafts) {
  double bytes = 0;
  for (const State& state : request.model.states) {
    const double value_bytes = state.value_bytes != 0 ? state.value_bytes : request.state == StateType::kF32 ? 4 : 2;
    const double ranks = ranks_sharing(state.heads, request.tp);
    const double written = static_cast<double>(state.values) * (state.copied_per_draft ? 1.0 + drafts : 1.0) +
                           static_cast<double>(state.draft_values) * drafts;
    bytes += state.layers * (static_cast<double>(state.values) + written) * value_bytes / ranks;
  }
  return {"recurrent states", bytes * pass.streams, fmt::format("{:g} sequences, read and written", pass.streams)};
}

namespace {

/// The output head, as far as the draft module chooses from it.
Traffic draft_head(const Request& request) {
  Traffic head = whole(request, Part::kHead);
  if (request.draft_vocabulary == 0 || request.draft_vocabulary >= request.model.vocabulary) return head;
  head.bytes *= static_cast<double>(request.draft_vocabulary) / static_cast<double>(request.model.vocabulary);
  head.formula += fmt::format(" x {} of {} tokens", request.draft_vocabulary, request.model.vocabulary);
  return head;
}

}  // namespace

std::vector<Traffic> draft_traffic(const Request& request, const Pass& pass, std::uint32_t passes) {
  const Model& model = request.model;
  std::vector<Traffic> traffic;
  if (passes == 0) return traffic;
  const double drafted = (pass.positions_each - 1) / passes * pass.streams;  // positions of one pass
  traffic.push_back(whole(request, Part::kDraftDense));
  if (model.draft_experts > 0) {
    traffic.push_back(routed(request, Part::kDraftExpert, drafted, model.draft_experts_per_token, model.draft_experts));
  }
  traffic.push_back(draft_head(request));
  const Pass each = {pass.streams, drafted / pass.streams, pass.length, drafted};
  const double kept = kv_bytes(request, each, true);
  traffic.push_back({"keys and values of the draft module", kept, fmt::format("keys and values of {}", gb(kept))});
  for (Traffic& term : traffic) {
    term.bytes *= passes;
    term.formula = fmt::format("{} x {}", passes, term.formula);
  }
  return traffic;
}

double arithmetic_ms(const Request& request, EngineId engine, const Pass& pass) {
  const Model& model = request.model;
  const Device& device = request.machine.device;
  double seconds = attention_operations(request, pass) / device.flops_bf16;
  for (const Part part : {Part::kDense, Part::kSharedExpert, Part::kRoutedExpert, Part::kHead}) {
    const PartSize& size = model.part(part);
    const double share = part == Part::kRoutedExpert && model.experts > 0
                             ? static_cast<double>(model.experts_per_token) / model.experts
                             : 1;
    const double positions = part == Part::kHead ? pass.chosen_at : pass.positions();
    seconds += 2 * static_cast<double>(size.parameters) * share * positions / rate_of(request, engine, size);
  }
  return seconds / request.tp / arithmetic_share(engine, model, device).share * 1e3;
}

const Link& all_reduce_link(const Request& request) {
  const Device& device = request.machine.device;
  return request.tp > request.devices_per_node() ? device.node_link : device.peer_link;
}

double all_reduce_latency_us(const Request& request) {
  const Link& link = all_reduce_link(request);
  return link.latency_us * (link.is_ring ? std::max(request.tp, 2u) - 1 : 1);
}

double all_reduce_ms(const Request& request, double layers, double positions) {
  if (request.tp <= 1) return 0;
  constexpr double kEachLayer = 2;  // after attention and after the experts
  const Link& link = all_reduce_link(request);
  const double bytes =
      positions * static_cast<double>(request.model.hidden) * kActivationBytes * 2 * (request.tp - 1) / request.tp;
  const double carried_us = link.bytes_per_s > 0 ? bytes / link.bytes_per_s * 1e6 : 0;
  return kEachLayer * layers * (all_reduce_latency_us(request) + carried_us) / 1e3;
}

}  // namespace rowtide::sizing
