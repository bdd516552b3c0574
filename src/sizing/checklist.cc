// What to verify on the real machine.
#include <fmt/format.h>

#include <algorithm>

#include "base/grouped.h"
#include "sizing/memory_plan.h"

namespace rowtide::sizing {
namespace {

std::string size(std::uint64_t bytes) { return gib(static_cast<double>(bytes)); }

struct Served {
  int port;                  // where it listens unless told otherwise
  std::string_view kv_line;  // of its log, that tells the room for keys and values
};

Served served_by(EngineId engine) {
  switch (engine) {
    case EngineId::kLlamaCpp: return {8080, "KV buffer size"};
    case EngineId::kVllm: return {8000, "GPU KV cache size"};
    case EngineId::kSglang: return {30000, "max_total_num_tokens"};
  }
  return {};
}

void add_machine(const Plan& plan, std::vector<Check>& checks) {
  const Request& request = plan.request;
  const Device& device = request.machine.device;
  const std::uint64_t memory = device.is_unified ? device.visible_bytes : request.machine.host_memory_bytes;
  checks.push_back({"the memory that the system shows", "free -b | awk '/^Mem:/ {print $2}'",
                    fmt::format("{} ({}) or more; if not, plan again with {}", memory, size(memory),
                                device.is_unified ? "--visible" : "--host-memory")});
  if (!device.is_unified) {
    checks.push_back({"the memory of each device", "nvidia-smi --query-gpu=memory.total,memory.used --format=csv",
                      fmt::format("{} MiB in all, next to nothing used", grouped(device.visible_bytes >> 20))});
  }
}

void add_files(const Plan& plan, std::vector<Check>& checks) {
  const Model& model = plan.request.model;
  checks.push_back({"what is in the checkpoint", "rowtide inspect MODEL",
                    fmt::format("{} in all, {} of them tables", size(model.bytes_total()), size(model.bytes_table()))});
  const Pool& disk = plan.pools.back();
  checks.push_back(
      {"room on the drive", "df -B1 FOLDER",
       fmt::format("{} for {}", size(disk.used_bytes()),
                   disk.items.size() == 1 ? "the checkpoint" : "the checkpoint and the engine's file of the table")});
  if (plan.placement != Placement::kNvme) return;
  const double reads = std::max(plan.table.reads_per_s_decode, plan.table.reads_per_s_prefill);
  checks.push_back(
      {"what the drive can do", "rowtide calibrate FOLDER",
       fmt::format("{} reads a second or more: {} at decode, {} at prefill", grouped(static_cast<std::uint64_t>(reads)),
                   grouped(static_cast<std::uint64_t>(plan.table.reads_per_s_decode)),
                   grouped(static_cast<std::uint64_t>(plan.table.reads_per_s_prefill)))});
  if (plan.engine != EngineId::kLlamaCpp) return;
  checks.push_back({"that rows come exactly and sooner than by themselves", "rowtide try MODEL",
                    "the same output, in less time for the gather"});
}

void add_running(const Plan& plan, std::vector<Check>& checks) {
  const Served served = served_by(plan.engine);
  checks.push_back({"that nothing stands in the way", "rowtide doctor MODEL", "no problem"});
  checks.push_back(
      {"the engine's own sum of room for keys and values", fmt::format("grep '{}' LOG", served.kv_line),
       fmt::format("about {}; {} tokens at most by this plan", size(plan.kv.bytes), grouped(plan.kv.tokens))});
  if (plan.engine == EngineId::kLlamaCpp && plan.placement) {
    checks.push_back({"that the plug-in serves the table", "grep 'rowtide: serving' LOG",
                      "one line; llama.cpp goes on without a plug-in that it refuses"});
  }
  checks.push_back({"the memory after the longest prompt", "grep -E 'MemAvailable|SwapFree' /proc/meminfo",
                    "MemAvailable above 6 GiB and no swap in use; MemFree says nothing"});
  checks.push_back({"the speed of one request",
                    fmt::format("time curl -s http://127.0.0.1:{}/v1/completions -H 'Content-Type: application/json' "
                                "-d '{{\"model\": \"MODEL\", \"prompt\": \"PROMPT\", \"max_tokens\": {}}}'",
                                served.port, plan.request.output),
                    fmt::format("about {:.0f} tok/s by estimate; docs/sizing.md has the errors of such estimates",
                                plan.speed.request_tok_s)});
}

}  // namespace

std::vector<Check> checklist(const Plan& plan) {
  std::vector<Check> checks;
  add_machine(plan, checks);
  add_files(plan, checks);
  add_running(plan, checks);
  return checks;
}

}  // namespace rowtide::sizing
