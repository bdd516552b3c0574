// The options of a plan, and how each is read from text.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/nearest.h"
#include "base/printable.h"
#include "rowtide/byte_size.h"
#include "sizing/request.h"

namespace rowtide::sizing {
namespace {

using Setter = Result<void> (*)(PlanOptions& options, const PlanOption& option, std::string_view value);

Error unfit(const PlanOption& option, std::string_view value, std::string_view wanted) {
  return make_error(ErrorCode::kUsage, "--{} {}: it must be {}", option.name, printable(std::string(value)), wanted);
}

template <class Number>
void assign(Number& to, std::uint64_t number) {
  to = static_cast<Number>(number);
}
template <class Number>
void assign(std::optional<Number>& to, std::uint64_t number) {
  to = static_cast<Number>(number);
}

/// A whole number of least..most.
template <auto member, std::uint64_t least, std::uint64_t most>
Result<void> count(PlanOptions& options, const PlanOption& option, std::string_view value) {
  std::uint64_t number = 0;
  const auto read = std::from_chars(value.data(), value.data() + value.size(), number);
  if (read.ec != std::errc{} || read.ptr != value.data() + value.size() || number < least || number > most) {
    return unfit(option, value, fmt::format("a whole number of {} to {}", least, most));
  }
  assign(options.*member, number);
  return {};
}

constexpr std::uint64_t kSizeMost = std::uint64_t{1} << 50;  // a pebibyte: more is a slip

/// Of at least `least`: 0 is an answer only for what there may be none of.
template <auto member, std::uint64_t least = 1>
Result<void> size(PlanOptions& options, const PlanOption& option, std::string_view value) {
  const auto bytes = parse_byte_size(value);
  if (!bytes || *bytes < least || *bytes > kSizeMost) {
    return unfit(option, value,
                 fmt::format("a size as in 26GiB or 99GB, {}of at most 1024TiB", least > 0 ? "more than 0, " : ""));
  }
  options.*member = *bytes;
  return {};
}

/// A number above 0, at most `most`.
template <auto member, int most>
Result<void> real(PlanOptions& options, const PlanOption& option, std::string_view value) {
  double number = 0;
  const auto read = std::from_chars(value.data(), value.data() + value.size(), number);
  if (read.ec != std::errc{} || read.ptr != value.data() + value.size() || !std::isfinite(number) || number <= 0 ||
      number > most) {
    return unfit(option, value, fmt::format("a number above 0, at most {}", most));
  }
  options.*member = number;
  return {};
}

template <auto member>
Result<void> text(PlanOptions& options, const PlanOption& option, std::string_view value) {
  if (value.empty()) return unfit(option, "''", "named");
  options.*member = std::string(value);
  return {};
}

/// What a choice may be is known to those who resolve it; `values` are all there are.
template <auto member>
Result<void> choice_of(PlanOptions& options, const PlanOption& option, std::string_view value,
                       const std::vector<std::string>& values) {
  if (std::find(values.begin(), values.end(), value) == values.end()) {
    return make_error(ErrorCode::kUsage, "--{} {}: it must be one of {}{}", option.name, printable(std::string(value)),
                      fmt::join(values, ", "), suggestion(value, values));
  }
  options.*member = value == "auto" ? std::string() : std::string(value);
  return {};
}

Result<void> set_kv(PlanOptions& options, const PlanOption& option, std::string_view value) {
  return choice_of<&PlanOptions::kv>(options, option, value, {"auto", "f16", "bf16", "fp8", "q8_0"});
}
Result<void> set_state(PlanOptions& options, const PlanOption& option, std::string_view value) {
  return choice_of<&PlanOptions::state>(options, option, value, {"auto", "f32", "bf16"});
}
Result<void> set_placement(PlanOptions& options, const PlanOption& option, std::string_view value) {
  return choice_of<&PlanOptions::placement>(options, option, value,
                                            {"auto", "device", "pinned", "host", "nvme", "remote"});
}
Result<void> set_engine(PlanOptions& options, const PlanOption& option, std::string_view value) {
  return choice_of<&PlanOptions::engine>(options, option, value, {"auto", "llama_cpp", "vllm", "sglang"});
}

Result<void> set_this_machine(PlanOptions& options, const PlanOption& option, std::string_view value) {
  if (!value.empty() && value != "1" && value != "true") return unfit(option, value, "given without a value");
  options.this_machine = true;
  return {};
}

struct Entry {
  PlanOption option;
  Setter set;
};

constexpr std::uint64_t kTokensMost = 100'000'000;

using O = PlanOptions;
const std::vector<Entry>& entries() {
  static const std::vector<Entry> list = {
      {{"model", "NAME", "model", "a model by its name instead of a checkpoint"}, text<&O::model>},
      {{"precision", "TYPE", "model", "of --model: BF16, FP8, NVFP4, Q4; the first it has if not given"},
       text<&O::precision>},
      {{"device", "NAME", "machine", "a device by its name: dgx-spark, rtx-pro-6000, h100, ..."}, text<&O::device>},
      {{"this-machine", "", "machine", "the machine at hand, as found"}, set_this_machine},
      {{"devices", "N", "machine", "devices in all (1)"}, count<&O::devices, 1, 4096>},
      {{"nodes", "N", "machine", "machines that hold them; as few as can if not given"}, count<&O::nodes, 1, 4096>},
      {{"tp", "N", "machine", "tensor-parallel ranks; all devices if not given"}, count<&O::tp, 1, 4096>},
      {{"ep", "N", "machine", "ranks that experts are spread over; 1: split like everything else"},
       count<&O::ep, 1, 4096>},
      {{"dp", "N", "machine", "replicas, each of --tp ranks"}, count<&O::dp, 1, 4096>},
      {{"host-memory", "SIZE", "machine", "host memory of a node, where devices have memory of their own"},
       size<&O::host_memory>},
      {{"visible", "SIZE", "machine", "a device's memory as system or driver show it, where it is not as listed"},
       size<&O::visible>},
      {{"disk", "SIZE", "machine", "free room on the drive of a node"}, size<&O::disk>},
      {{"price-per-hour", "X", "machine",
        "of all devices together, for the cost of a million decoded tokens with --concurrency always busy"},
       real<&O::price_per_hour, 1'000'000>},
      {{"context", "N", "load", "tokens of a sequence, prompt and answer (32,768, or the model's if less)"},
       count<&O::context, 1, kTokensMost>},
      {{"concurrency", "N", "load", "sequences at a time (1)"}, count<&O::concurrency, 1, 65'536>},
      {{"prompt", "N", "load", "tokens of a request's prompt, for the time to the first token (1,024)"},
       count<&O::prompt, 1, kTokensMost>},
      {{"output", "N", "load", "tokens of its answer (256)"}, count<&O::output, 1, kTokensMost>},
      {{"kv", "TYPE", "load", "of keys and values: auto, f16, bf16, fp8, q8_0"}, set_kv},
      {{"state", "TYPE", "load", "of recurrent states: auto, f32, bf16"}, set_state},
      {{"chunk", "N", "load", "prompt tokens computed together (2,048)"}, count<&O::chunk, 1, 1'048'576>},
      {{"speculate", "N", "load", "tokens drafted at each step (0)"}, count<&O::speculate, 0, 64>},
      {{"draft-vocabulary", "N", "load", "tokens that the draft module chooses from (all)"},
       count<&O::draft_vocabulary, 1, kTokensMost>},
      {{"engine", "NAME", "load", "auto, llama_cpp, vllm, sglang"}, set_engine},
      {{"placement", "TIER", "memory", "where the table goes: auto, device, pinned, host, nvme, remote"},
       set_placement},
      {{"memory", "SIZE", "memory", "the table's cache, where the table is on NVMe"}, size<&O::memory>},
      {{"host-reserve", "SIZE", "memory", "left to the system, the engine's host side and the page cache"},
       size<&O::host_reserve, 0>},
      {{"memory-fraction", "X", "memory", "share of a device's memory that the engine may take, 0 to 1"},
       real<&O::memory_fraction, 1>},
      {{"weights", "SIZE", "memory", "measured: weights on a device, without the table"}, size<&O::weights>},
      {{"table", "SIZE", "memory", "measured: the table"}, size<&O::table>},
      {{"other", "SIZE", "memory", "measured: activations, runtime and graphs on a device"}, size<&O::other, 0>},
      {{"decode-tok-s", "X", "targets", "tokens a second the table must keep up with, all streams together"},
       real<&O::decode_tok_s, 100'000'000>},
      {{"prefill-tok-s", "X", "targets", "prompt tokens a second the table must keep up with"},
       real<&O::prefill_tok_s, 100'000'000>},
      {{"target-ttft-ms", "X", "targets", "time to the first token that is good enough (1,000)"},
       real<&O::target_ttft_ms, 100'000'000>},
      {{"target-tok-s", "X", "targets", "tokens a second of one stream that are good enough (20)"},
       real<&O::target_tok_s, 1'000'000>},
  };
  return list;
}

}  // namespace

std::span<const PlanOption> plan_options() {
  static const std::vector<PlanOption> options = [] {
    std::vector<PlanOption> list;
    for (const Entry& entry : entries()) list.push_back(entry.option);
    return list;
  }();
  return options;
}

Result<void> set_plan_option(PlanOptions& options, std::string_view name, std::string_view value) {
  static constexpr PlanOption kPath = {"path", "PATH", "model", "a checkpoint"};
  if (name == kPath.name) return text<&O::path>(options, kPath, value);
  for (const Entry& entry : entries()) {
    if (entry.option.name == name) return entry.set(options, entry.option, value);
  }
  std::vector<std::string> names;
  for (const Entry& entry : entries()) names.emplace_back(entry.option.name);
  return make_error(ErrorCode::kUsage, "there is no option '{}'{}", printable(std::string(name)),
                    suggestion(name, names));
}

}  // namespace rowtide::sizing
