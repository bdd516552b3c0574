// What a plan is asked for.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sizing/device.h"
#include "sizing/model.h"

namespace rowtide::sizing {

enum class EngineId : std::uint8_t;

/// Where a table lies.
enum class Placement : std::uint8_t {
  kDevice,  // in device or unified memory, for good
  kPinned,  // in host memory, locked, read by the device over the link
  kHost,    // in host memory, resident, gathered by the CPU
  kNvme,    // in the checkpoint's files, with a cache in memory
  kRemote,  // in another machine's memory
};
inline constexpr std::array kPlacements = {Placement::kDevice, Placement::kPinned, Placement::kHost, Placement::kNvme,
                                           Placement::kRemote};
std::string_view placement_name(Placement placement);  // "device", "pinned", "host", "nvme", "remote"

/// As given by a person: the options of `rowtide plan`, and the parameters of the page's links. Nothing is checked yet
/// but what each value must look like.
struct PlanOptions {
  std::string path;  // of a checkpoint; empty: `model`
  std::string model, precision;
  std::string device;
  bool this_machine = false;
  std::optional<std::uint32_t> devices, nodes, tp, ep, dp;
  std::optional<std::uint64_t> context;
  std::uint32_t concurrency = 1;
  std::string kv, state, engine, placement;  // empty: chosen
  std::optional<std::uint32_t> chunk;
  std::uint32_t speculate = 0;                        // tokens drafted a step
  std::optional<std::uint64_t> draft_vocabulary;      // tokens that the draft module chooses from
  std::optional<std::uint64_t> prompt, output;        // tokens of a request, for TTFT and tokens/s
  std::optional<double> decode_tok_s, prefill_tok_s;  // speeds the table must keep up with, instead of the estimated
  double target_ttft_ms = 1000, target_tok_s = 20;
  std::optional<std::uint64_t> memory;  // the table cache's budget
  std::optional<std::uint64_t> host_reserve, host_memory, visible;
  std::optional<std::uint64_t> disk;                   // free on the drive of a node
  std::optional<std::uint64_t> weights, table, other;  // terms replaced by measured ones, of each device
  std::optional<double> memory_fraction;               // of a device's visible memory, that the engine may take
  std::optional<double> price_per_hour;                // of all devices
};

/// One option: how it is written, what it takes, what it is. `group` heads it in helps and on the page.
struct PlanOption {
  std::string_view name;        // "context"; "--context" on the command line, "context=" in a link
  std::string_view value_name;  // "N", "SIZE", "X", "TYPE"; empty for a flag
  std::string_view group;       // "model", "machine", "load", "memory", "targets"
  std::string_view help;
};
std::span<const PlanOption> plan_options();
/// Sets an option of that list (and "path") from text. kUsage that names option, value and what it takes; for an
/// unknown name with the nearest.
Result<void> set_plan_option(PlanOptions& options, std::string_view name, std::string_view value);

/// What a plan is made for: checked, with defaults in place.
struct Request {
  Model model;
  Machine machine;
  std::uint32_t devices = 1, nodes = 1, tp = 1, ep = 1, dp = 1;  // tp * dp = devices
  std::uint64_t context = 0;
  std::uint32_t concurrency = 1;
  KvType kv = KvType::kF16;
  StateType state = StateType::kF32;
  std::optional<EngineId> engine;      // nothing: chosen
  std::optional<Placement> placement;  // nothing: chosen
  std::uint32_t chunk = 2048;
  std::uint32_t speculate = 0;
  std::uint64_t draft_vocabulary = 0;  // tokens that the draft module chooses from; the model's if not reduced
  std::uint64_t prompt = 1024, output = 256;
  std::optional<double> decode_tok_s, prefill_tok_s;
  double target_ttft_ms = 1000, target_tok_s = 20;
  std::optional<std::uint64_t> memory, weights, table, other;
  std::uint64_t host_reserve = 0;
  std::string host_reserve_source;
  std::optional<double> memory_fraction, price_per_hour;
  std::vector<std::string> notes;  // what was chosen for the person, and why

  std::uint32_t devices_per_node() const { return devices / nodes; }
  /// The table's bytes, or what was measured in their stead.
  std::uint64_t table_bytes() const { return table ? *table : model.bytes_table(); }
};

/// Finds model and machine, and checks everything against everything. kUsage that names the option and its value, and
/// what would do: an unknown model or device (with the nearest), options that contradict each other, a context beyond
/// the model's, tp that does not divide the heads or leaves a rank without hash heads, numbers that are 0 or absurd;
/// the errors of model_of_checkpoint().
Result<Request> resolve(const PlanOptions& options);

}  // namespace rowtide::sizing
