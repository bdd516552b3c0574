// What to verify on the real machine.
#include <fmt/format.h>

#include "sizing/memory_plan.h"

namespace rowtide::sizing {

std::vector<Check> checklist(const Plan& plan) {
  const Request& request = plan.request;
  const Device& device = request.machine.device;
  std::vector<Check> checks;
  checks.push_back(
      {"the memory that the system shows", "free -b | awk '/^Mem:/ {print $2}'",
       device.is_unified
           ? fmt::format("{} or more ({}); if not, plan again with --visible", device.visible_bytes,
                         gib(static_cast<double>(device.visible_bytes)))
           : fmt::format("{} or more; if not, plan again with --host-memory", request.machine.host_memory_bytes)});
  if (!device.is_unified) {
    checks.push_back({"the memory of each device", "nvidia-smi --query-gpu=memory.total,memory.used --format=csv",
                      fmt::format("{} MiB in all, next to nothing used", device.visible_bytes >> 20)});
  }
  checks.push_back({"what is in the checkpoint", "rowtide inspect MODEL",
                    fmt::format("{} in all, of it {} of tables", gib(static_cast<double>(request.model.bytes_total())),
                                gib(static_cast<double>(request.model.bytes_table())))});
  checks.push_back({"room on the drive", "df -B1 MODEL",
                    fmt::format("{} for the checkpoint", gib(static_cast<double>(plan.pools.back().used_bytes())))});
  if (plan.placement == Placement::kNvme) {
    checks.push_back({"the drive", "rowtide calibrate FOLDER-OF-MODEL",
                      fmt::format("{:.0f} reads a second or more: decode needs {:.0f}, prefill {:.0f}",
                                  std::max(plan.table.reads_per_s_decode, plan.table.reads_per_s_prefill),
                                  plan.table.reads_per_s_decode, plan.table.reads_per_s_prefill)});
    checks.push_back({"that the table's rows come exactly and in time", "rowtide try MODEL",
                      "same output, and a gather that is faster than the engine's own"});
  }
  checks.push_back({"that nothing stands in the way", "rowtide doctor MODEL", "no problem"});
  checks.push_back({"the memory while it runs, after the longest prompt",
                    "grep -E 'MemAvailable|SwapFree' /proc/meminfo",
                    "MemAvailable above 6 GiB, no swap in use; MemFree says nothing"});
  checks.push_back({"the speed, by requests of this length one after the other",
                    "llama-bench or the engine's own benchmark",
                    fmt::format("about {:.0f} tok/s and a first token in {:.0f} ms: estimates, within a third or so",
                                plan.speed.decode_tok_s, plan.speed.ttft_ms)});
  return checks;
}

}  // namespace rowtide::sizing
