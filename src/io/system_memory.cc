#include "io/system_memory.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <map>
#include <set>

#include "base/error.h"
#include "io/kernel_text.h"
#include "io/mounts.h"
#include "io/process_maps.h"
#include "rowtide/byte_size.h"

namespace rowtide::io {
namespace {

std::uint64_t less(std::uint64_t a, std::uint64_t b) { return a > b ? a - b : 0; }

struct Interval {
  std::uint64_t begin = 0, end = 0;
};

/// Disjoint and ascending.
std::vector<Interval> merged(std::vector<Interval> intervals) {
  std::sort(intervals.begin(), intervals.end(), [](auto& a, auto& b) { return a.begin < b.begin; });
  std::vector<Interval> result;
  for (const Interval& interval : intervals) {
    if (interval.begin >= interval.end) continue;
    if (!result.empty() && interval.begin <= result.back().end) {
      result.back().end = std::max(result.back().end, interval.end);
    } else {
      result.push_back(interval);
    }
  }
  return result;
}

/// How much of the `intervals` does not lie in `holes`; both merged.
std::uint64_t bytes_outside(const std::vector<Interval>& intervals, const std::vector<Interval>& holes) {
  std::uint64_t bytes = 0;
  for (const Interval& interval : intervals) {
    bytes += interval.end - interval.begin;
    for (const Interval& hole : holes) {
      bytes -= less(std::min(interval.end, hole.end), std::max(interval.begin, hole.begin));
    }
  }
  return bytes;
}

/// The parts of `path` that are not counted. The process map has paths without symbolic links.
std::vector<Interval> holes_of(const std::string& path, const std::vector<FileRange>& not_counted) {
  std::vector<Interval> holes;
  for (const FileRange& range : not_counted) {
    std::error_code absent;
    const std::string canonical = std::filesystem::canonical(range.path, absent).string();
    if ((absent ? range.path : canonical) == path) holes.push_back({range.offset, range.offset + range.bytes});
  }
  return merged(std::move(holes));
}

constexpr std::array<std::string_view, 6> kMemoryFileSystems = {"tmpfs",     "devtmpfs", "ramfs",
                                                                "hugetlbfs", "proc",     "sysfs"};

/// Devices of the file systems whose files lie in memory or are no memory of the machine, as the process map names
/// them.
std::set<std::string> memory_devices(const std::string& root) {
  std::set<std::string> devices;
  for (const Mount& mount : mounts(root)) {
    unsigned major = 0, minor = 0;
    const bool in_memory =
        std::find(kMemoryFileSystems.begin(), kMemoryFileSystems.end(), mount.type) != kMemoryFileSystems.end();
    if (!in_memory || std::sscanf(mount.device.c_str(), "%u:%u", &major, &minor) != 2) continue;
    devices.insert(fmt::format("{:02x}:{:02x}", major, minor));
  }
  return devices;
}

/// Of file systems that are mounted nowhere: memory that processes share.
bool is_shared_memory(const std::string& path) {
  return path.starts_with("/memfd:") || path.starts_with("/SYSV") || path.starts_with("/dev/zero");
}

struct MappedFile {
  std::vector<Interval> mapped;
  std::vector<Interval> holes;
};

std::uint64_t mapped_file_bytes(const std::vector<FileRange>& not_counted, bool locks, const std::string& root) {
  const std::set<std::string> in_memory = memory_devices(root);
  std::map<std::string, MappedFile> files;  // by inode: a file that is mapped twice needs its pages once
  std::uint64_t locked = 0;
  for (const Mapping& mapping : process_mappings(locks ? Detail::kLocked : Detail::kPlaces, root)) {
    if (!mapping.is_file() || is_shared_memory(mapping.path) || in_memory.count(mapping.device) != 0) continue;
    auto [file, added] = files.try_emplace(mapping.inode);
    if (added) file->second.holes = holes_of(mapping.path, not_counted);
    const Interval interval{mapping.offset, mapping.offset + mapping.bytes()};
    file->second.mapped.push_back(interval);
    // Of what is locked, the holes may be part; what is sure to lie outside them counts.
    locked += less(mapping.locked_bytes, mapping.bytes() - bytes_outside({interval}, file->second.holes));
  }
  std::uint64_t bytes = 0;
  for (auto& [inode, file] : files) bytes += bytes_outside(merged(std::move(file.mapped)), file.holes);
  return less(bytes, locked);
}

std::uint64_t headroom(const MemoryCgroup& group) {
  return group.limit_bytes ? less(*group.limit_bytes, group.held_bytes()) : std::numeric_limits<std::uint64_t>::max();
}

std::optional<MemoryCgroup> tightest_cgroup(const std::string& root) {
  std::vector<MemoryCgroup> groups = memory_cgroups(root);
  std::erase_if(groups, [](const MemoryCgroup& group) { return !group.limit_bytes; });
  const auto tightest =
      std::min_element(groups.begin(), groups.end(), [](auto& a, auto& b) { return headroom(a) < headroom(b); });
  return tightest == groups.end() ? std::nullopt : std::optional(*tightest);
}

}  // namespace

std::uint64_t AvailableMemory::bytes() const {
  const std::uint64_t physical = cgroup ? std::min(available_bytes, headroom(*cgroup)) : available_bytes;
  const std::uint64_t left = less(physical, mapped_bytes);
  return address_space_limit_bytes ? std::min(left, less(*address_space_limit_bytes, address_space_bytes)) : left;
}

std::string AvailableMemory::text() const {
  const auto size = byte_size_text;
  const std::uint64_t result = bytes();
  if (address_space_limit_bytes && result == less(*address_space_limit_bytes, address_space_bytes)) {
    return fmt::format("{}: the process may use {} of addresses (ulimit -v) and uses {}", size(result),
                       size(*address_space_limit_bytes), size(address_space_bytes));
  }
  const std::string mapped = mapped_bytes == 0 ? "" : fmt::format(", less {} of mapped files", size(mapped_bytes));
  if (cgroup && headroom(*cgroup) < available_bytes) {
    return fmt::format("{}: the cgroup {} allows {} and holds {}{}", size(result), cgroup->folder,
                       size(*cgroup->limit_bytes), size(cgroup->held_bytes()), mapped);
  }
  return fmt::format("{}: of the machine's {} the kernel counts {} as available{}", size(result), size(total_bytes),
                     size(available_bytes), mapped);
}

Result<AvailableMemory> available_memory(const std::vector<FileRange>& not_counted, const std::string& root) {
  const std::string meminfo_path = root + "/proc/meminfo";
  const std::string meminfo = kernel_text(meminfo_path).value_or("");
  const auto kib = [](const std::string& text, std::string_view name) {
    return named_number(text, name).value_or(0) * 1024;
  };
  if (!named_number(meminfo, "MemAvailable:")) {
    return make_error(ErrorCode::kUnsupported, "{} does not say how much memory is available (MemAvailable)",
                      meminfo_path);
  }
  AvailableMemory memory;
  memory.total_bytes = kib(meminfo, "MemTotal:");
  memory.free_bytes = kib(meminfo, "MemFree:");
  memory.available_bytes = kib(meminfo, "MemAvailable:");
  memory.cgroup = tightest_cgroup(root);

  const std::string status = kernel_text(root + "/proc/self/status").value_or("");
  memory.mapped_bytes = mapped_file_bytes(not_counted, kib(status, "VmLck:") != 0, root);
  const std::string limits = kernel_text(root + "/proc/self/limits").value_or("");
  memory.address_space_limit_bytes = named_number(limits, "Max address space");
  memory.address_space_bytes = kib(status, "VmSize:");
  return memory;
}

}  // namespace rowtide::io
