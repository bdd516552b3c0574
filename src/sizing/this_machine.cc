// The machine at hand, as a plan sees it.
#include <fmt/format.h>
#include <sched.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <thread>

#include "base/error.h"
#include "base/printable.h"
#include "io/drive.h"
#include "io/kernel_text.h"
#include "io/system_memory.h"
#include "io/unified_memory.h"
#include "sizing/device.h"
#include "sizing/device_data.h"

namespace rowtide::sizing {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> entries(const std::string& folder) {
  std::vector<fs::path> paths;
  std::error_code failed;
  for (fs::directory_iterator at(folder, failed), end; !failed && at != end; at.increment(failed)) {
    paths.push_back(at->path());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

std::string first_line(const fs::path& path) {
  const std::string text = io::kernel_text(path.string()).value_or("");
  return text.substr(0, text.find('\n'));
}

/// What follows `key` and blanks on a line of its own: "Model: \t\t NVIDIA H200".
std::string value_of_line(const std::string& text, std::string_view key) {
  const auto at = text.find(key);
  if (at == std::string::npos) return {};
  const auto begin = text.find_first_not_of(" \t", at + key.size());
  if (begin == std::string::npos) return {};
  std::string value = text.substr(begin, text.find('\n', begin) - begin);
  while (!value.empty() && (value.back() == ' ' || value.back() == '\t')) value.pop_back();
  return value;
}

/// A kind of GPU in this machine.
struct Gpus {
  std::string name;       // as the driver says it, or a PCI id
  std::string device_id;  // in known_devices(); empty: unknown
  std::uint32_t count = 0;
  std::uint64_t memory_bytes = 0;  // 0: not told
};

void count(std::vector<Gpus>& gpus, const Gpus& one) {
  const auto same = std::find_if(gpus.begin(), gpus.end(), [&](const Gpus& each) { return each.name == one.name; });
  if (same == gpus.end()) {
    gpus.push_back(one);
  } else {
    ++same->count;
  }
}

std::vector<Gpus> nvidia_gpus(const std::string& root) {
  std::vector<Gpus> gpus;
  for (const fs::path& gpu : entries(root + "/proc/driver/nvidia/gpus")) {
    const std::string name = value_of_line(io::kernel_text((gpu / "information").string()).value_or(""), "Model:");
    if (name.empty()) continue;
    Gpus one{name, "", 1, 0};
    for (const DetectedName& known : detected_names()) {
      if (known.driver_name == name) one.device_id = known.device_id;
    }
    count(gpus, one);
  }
  return gpus;
}

/// Those that models are run on: known ones, and others with 8 GiB or more. Processors have small ones of their own.
std::vector<Gpus> amd_gpus(const std::string& root) {
  constexpr std::uint64_t kLeastBytes = std::uint64_t{8} << 30;
  std::vector<Gpus> gpus;
  for (const fs::path& card : entries(root + "/sys/class/drm")) {
    // "card0" is a device, "card0-DP-1" an output of it.
    const std::string file = card.filename().string();
    if (!file.starts_with("card") || file.find('-') != std::string::npos) continue;
    if (first_line(card / "device/vendor") != "0x1002") continue;
    const std::string id = first_line(card / "device/device");
    Gpus one{"AMD GPU " + id, "", 1, io::leading_number(first_line(card / "device/mem_info_vram_total")).value_or(0)};
    for (const DetectedName& known : detected_names()) {
      if (known.pci_id == id) one.device_id = known.device_id;
    }
    if (!one.device_id.empty() || one.memory_bytes >= kLeastBytes) count(gpus, one);
  }
  return gpus;
}

std::uint64_t limit_of(const io::AvailableMemory& memory) {
  const auto limit = memory.cgroup ? memory.cgroup->limit_bytes : std::nullopt;
  return std::min(memory.total_bytes, limit.value_or(memory.total_bytes));
}

unsigned usable_cores() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  const int count = ::sched_getaffinity(0, sizeof(cores), &cores) == 0 ? CPU_COUNT(&cores) : 0;
  return count > 0 ? static_cast<unsigned>(count) : std::max(1u, std::thread::hardware_concurrency());
}

constexpr unsigned kCopyThreadsMost = 4;
constexpr std::chrono::milliseconds kCopyTime{50};

/// Bytes that one thread reads and writes a second while it copies; 0 where memory is short.
double copied_by_one_bytes_per_s() {
  constexpr std::size_t kBytes = std::size_t{16} << 20;  // twice, for each thread: a plan is to need little
  const std::unique_ptr<char[]> from(new (std::nothrow) char[kBytes]), to(new (std::nothrow) char[kBytes]);
  if (from == nullptr || to == nullptr) return 0;
  std::memset(from.get(), 1, kBytes);
  std::memset(to.get(), 2, kBytes);
  const auto start = std::chrono::steady_clock::now();
  std::size_t copied = 0;
  std::chrono::duration<double> spent{0};
  while (spent < kCopyTime) {
    std::memcpy(to.get(), from.get(), kBytes);
    asm volatile("" : : "r"(to.get()) : "memory");  // a copy that nobody reads is left out otherwise
    copied += 2 * kBytes;
    spent = std::chrono::steady_clock::now() - start;
  }
  return static_cast<double>(copied) / spent.count();
}

double copied_bytes_per_s(unsigned workers) {
  std::vector<double> rates(workers, 0);
  std::vector<std::thread> threads;
  for (double& rate : rates) threads.emplace_back([&rate] { rate = copied_by_one_bytes_per_s(); });
  for (std::thread& thread : threads) thread.join();
  double sum = 0;
  for (const double rate : rates) sum += rate;
  return sum;
}

/// A machine that computes with its processor. `name` of a GPU that shares its memory and of which nothing is known.
Device cpu_device(const io::AvailableMemory& memory, const std::string& gpu, const std::string& root) {
  const CpuFacts& facts = cpu_facts();
  Device device;
  device.id = "cpu";
  std::string model = value_of_line(io::kernel_text(root + "/proc/cpuinfo").value_or(""), "model name\t:");
  if (!gpu.empty()) model = gpu;
  device.name = model.empty() ? "this machine's processor" : printable(model);
  device.is_unified = true;
  device.sold_bytes = device.installed_bytes = memory.total_bytes;
  device.visible_bytes = limit_of(memory);
  const unsigned cores = usable_cores();
  const unsigned copiers = std::min(cores, kCopyThreadsMost);
  const double measured = root.empty() ? copied_bytes_per_s(copiers) : 0;
  device.bandwidth_bytes_per_s = measured > 0 ? measured : facts.bandwidth_bytes_per_s;
  device.sources.push_back(measured > 0
                               ? fmt::format("bandwidth: measured by copying with {} threads for 50 ms", copiers)
                               : "bandwidth: " + facts.bandwidth_source);
  device.bandwidth_share = facts.bandwidth_share;
  device.bandwidth_share_source = facts.bandwidth_share_source;
  device.flops_bf16 = cores * facts.flops_of_core;
  device.sources.push_back(fmt::format("operations: {} cores, {}", cores, facts.flops_source));
  device.compute_share = facts.compute_share;
  device.compute_share_source = facts.compute_share_source;
  device.host_link = {"unified memory", device.bandwidth_bytes_per_s, 0, "one memory"};
  device.host_reserve_bytes = std::min(facts.reserve_bytes, device.visible_bytes / 8);
  device.host_reserve_reason = facts.reserve_reason;
  return device;
}

/// A known device whose memory is the machine's.
Device unified_device(const std::string& id, const io::AvailableMemory& memory) {
  Device device = *known_device(id);
  device.visible_bytes = limit_of(memory);
  device.sources.push_back("visible memory: MemTotal of this machine, or its cgroup's limit");
  return device;
}

/// The kind that there is most of, for a plan takes devices of one kind.
Result<Device> discrete_device(const std::vector<Gpus>& gpus) {
  const auto most = std::max_element(gpus.begin(), gpus.end(), [](const Gpus& a, const Gpus& b) {
    return std::pair(!a.device_id.empty(), a.count) < std::pair(!b.device_id.empty(), b.count);
  });
  if (most->device_id.empty()) {
    return make_error(ErrorCode::kUnsupported,
                      "this machine's GPU ({}) is not among the known devices: give --device NAME for one like it, "
                      "and --visible SIZE for its memory",
                      printable(most->name));
  }
  Device device = *known_device(most->device_id);
  device.devices_per_node = most->count;
  if (most->memory_bytes != 0) {
    device.visible_bytes = most->memory_bytes;
    device.sources.push_back("visible memory: mem_info_vram_total of this machine");
  }
  for (const Gpus& other : gpus) {
    if (&other != &*most) {
      device.sources.push_back(fmt::format("{} x {} of this machine is left out", other.count, printable(other.name)));
    }
  }
  return device;
}

struct UnifiedName {
  std::string_view told, device_id;
};
constexpr std::array<UnifiedName, 3> kUnified = {
    {{"NVIDIA GB10", "dgx-spark"}, {"NVIDIA DGX Spark", "dgx-spark"}, {"AMD Strix Halo", "strix-halo"}}};

Result<Device> device_here(const io::AvailableMemory& memory, const std::string& root) {
  const std::string unified = io::unified_memory(root);
  for (const UnifiedName& known : kUnified) {
    if (known.told == unified) return unified_device(std::string(known.device_id), memory);
  }
  if (!unified.empty()) return cpu_device(memory, unified, root);
  std::vector<Gpus> gpus = nvidia_gpus(root);
  for (const Gpus& amd : amd_gpus(root)) gpus.push_back(amd);
  return gpus.empty() ? Result<Device>(cpu_device(memory, "", root)) : discrete_device(gpus);
}

std::optional<std::uint64_t> free_disk_bytes(const std::string& path) {
  struct statvfs system{};
  if (::statvfs(path.c_str(), &system) != 0) return std::nullopt;
  return std::uint64_t{system.f_bavail} * system.f_frsize;
}

}  // namespace

std::optional<DriveRates> calibrated_drive(const std::string& path) {
  const auto figures = io::calibrated_figures(path);
  const auto drive = io::drive_of(path);
  if (!figures || !drive) return std::nullopt;
  DriveRates rates{drive->name, 0, figures->serial_us, figures->sequential_bytes_per_s,
                   "measured by `rowtide calibrate`"};
  for (const auto& [depth, reads_per_s] : figures->depth_curve)
    rates.reads_per_s = std::max(rates.reads_per_s, reads_per_s);
  return rates;
}

Result<Machine> this_machine(const std::string& path, const std::string& root) {
  const auto memory = io::available_memory({}, root);
  if (!memory) return memory.error();
  auto device = device_here(*memory, root);
  if (!device) return device.error();
  Machine machine;
  machine.device = *std::move(device);
  machine.is_this = true;
  machine.host_memory_bytes = machine.device.is_unified ? 0 : limit_of(*memory);
  machine.host_available_bytes = memory->bytes();
  machine.disk_free_bytes = free_disk_bytes(path);
  machine.drive = calibrated_drive(path).value_or(assumed_drive());
  return machine;
}

}  // namespace rowtide::sizing
