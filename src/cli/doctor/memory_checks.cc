#include <fmt/format.h>

#include <algorithm>

#include "cli/doctor/checks.h"
#include "io/kernel_text.h"
#include "io/unified_memory.h"
#include "rowtide/byte_size.h"
#include "rowtide/store.h"

namespace rowtide::cli::doctor {
namespace {

constexpr std::uint64_t kGib = std::uint64_t{1} << 30;
constexpr std::uint64_t kContainerShmBytes = std::uint64_t{64} << 20;  // what docker and podman give
constexpr std::uint64_t kSwapInUseShare = 4;                           // one part in so many is worth a word

Finding check_available(const System& system) {
  Finding found{"memory", Group::kMemory, Level::kOk, "", "", ""};
  const auto available = io::available_memory({}, system.root);
  if (!available) {
    found.level = Level::kNote;
    found.finding = available.error().message;
    found.meaning = "without --memory Rowtide takes its least, " + byte_size_text(kMemoryBytesMin);
    found.fix = "name a budget: --memory 1GiB";
    return found;
  }
  found.finding = "available are " + available->text();
  const std::uint64_t bytes = available->bytes();
  if (bytes >= kGib) return found;
  found.level = bytes < kMemoryBytesMin ? Level::kProblem : Level::kWarning;
  found.meaning = bytes < kMemoryBytesMin
                      ? fmt::format("Rowtide's least is {}: no store opens", byte_size_text(kMemoryBytesMin))
                      : "little stays for a cache beside the model";
  found.fix = available->cgroup ? "raise the limit: docker run --memory 8g, or MemoryMax= of the systemd unit"
                                : "end what takes the memory (ps aux --sort=-rss | head), or take a larger machine";
  return found;
}

Finding check_cgroup(const System& system) {
  Finding found{"cgroup", Group::kMemory, Level::kOk, "no limit on this process's groups", "", ""};
  const auto groups = io::memory_cgroups(system.root);
  const auto headroom = [](const io::MemoryCgroup& group) {
    return *group.limit_bytes > group.held_bytes() ? *group.limit_bytes - group.held_bytes() : 0;
  };
  const io::MemoryCgroup* tightest = nullptr;
  for (const io::MemoryCgroup& group : groups) {
    if (group.limit_bytes && (tightest == nullptr || headroom(group) < headroom(*tightest))) tightest = &group;
  }
  if (groups.empty()) found.finding = "no memory controller is seen, so no limit";
  if (tightest == nullptr) return found;
  found.finding = fmt::format("{} allows {}, of which {} are left", tightest->folder,
                              byte_size_text(*tightest->limit_bytes), byte_size_text(headroom(*tightest)));
  if (headroom(*tightest) >= kGib) return found;
  found.level = Level::kWarning;
  found.meaning = "the kernel kills a process of the group, or makes it wait, when it holds more; weights count too";
  found.fix = "docker or podman run --memory 8g; of a systemd unit: sudo systemctl set-property UNIT MemoryMax=8G";
  return found;
}

Finding check_swap(const System& system) {
  const std::string meminfo = io::kernel_text(system.root + "/proc/meminfo").value_or("");
  const std::uint64_t total = io::named_number(meminfo, "SwapTotal:").value_or(0) * 1024;
  const std::uint64_t free = io::named_number(meminfo, "SwapFree:").value_or(0) * 1024;
  Finding found{"swap", Group::kMemory, Level::kOk, "none", "", ""};
  if (total == 0) return found;
  const std::uint64_t used = total - std::min(free, total);
  found.finding = fmt::format("{}, {} of it in use", byte_size_text(total), byte_size_text(used));
  if (used < total / kSwapInUseShare) return found;
  found.level = Level::kNote;
  found.meaning = "memory was short; a cached row that was swapped out costs a read, as if it were not cached";
  found.fix = "a smaller --memory; or keep the program's memory out of swap: systemd-run --user -p MemorySwapMax=0 ...";
  return found;
}

/// "always [madvise] never" -> "madvise".
std::string chosen_word(const std::string& text) {
  const std::size_t begin = text.find('['), end = text.find(']');
  return begin == std::string::npos || end == std::string::npos ? "" : text.substr(begin + 1, end - begin - 1);
}

Finding check_huge_pages(const System& system) {
  const std::string chosen =
      chosen_word(io::kernel_text(system.root + "/sys/kernel/mm/transparent_hugepage/enabled").value_or(""));
  Finding found{"huge_pages", Group::kMemory, Level::kOk, "transparent huge pages: " + chosen, "", ""};
  if (chosen == "always" || chosen == "madvise") return found;
  found.level = Level::kNote;
  if (chosen.empty()) found.finding = "transparent huge pages: this kernel has none, or does not say";
  found.meaning = "caches and resident tables lie in small pages, so looking a row up takes somewhat longer";
  found.fix = chosen.empty() ? "" : "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled";
  return found;
}

Finding check_shared_memory(const System& system) {
  Finding found{"shared_memory", Group::kMemory, Level::kOk, "", "", ""};
  if (system.shm_bytes) found.finding = "/dev/shm holds " + byte_size_text(*system.shm_bytes);
  if (!system.shm_bytes) found.finding = "there is no /dev/shm";
  if (system.shm_bytes && *system.shm_bytes > kContainerShmBytes) return found;
  found.level = Level::kNote;
  found.meaning = "Rowtide and llama.cpp do without; engines of several processes (vLLM, SGLang) need gigabytes there";
  found.fix = "docker or podman run --shm-size 8g, or --ipc=host; in Kubernetes an emptyDir of medium Memory";
  return found;
}

Finding check_unified_memory(const System& system) {
  const std::string machine = io::unified_memory(system.root);
  Finding found{
      "unified_memory", Group::kMemory, Level::kOk, "no machine whose GPU is known to share the CPU's memory", "", ""};
  if (machine.empty()) return found;
  found.level = Level::kNote;
  found.finding = machine + ": CPU and GPU share one memory";
  found.meaning = "the budget is taken whole at the start and kept, so that the engine sizes its own share beside it";
  found.fix = "choose it with --memory (ROWTIDE_MEMORY in an engine)";
  return found;
}

}  // namespace

Findings check_memory(const System& system) {
  return {check_available(system),  check_cgroup(system),        check_swap(system),
          check_huge_pages(system), check_shared_memory(system), check_unified_memory(system)};
}

}  // namespace rowtide::cli::doctor
