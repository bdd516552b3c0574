// The memory cgroups that this process is charged to, of version 1 and 2 (the kernel's admin-guide/cgroup-v1/memory and
// admin-guide/cgroup-v2).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace rowtide::io {

/// One group; the process is in it or in one below.
struct MemoryCgroup {
  std::string folder;                        // where its files are
  std::optional<std::uint64_t> limit_bytes;  // what it and all below it may hold before the kernel throttles or kills
  std::uint64_t usage_bytes = 0;             // what they hold, page cache included
  std::uint64_t cache_bytes = 0;             // of that: file pages on the kernel's lists, which it takes back at need

  std::uint64_t held_bytes() const { return usage_bytes > cache_bytes ? usage_bytes - cache_bytes : 0; }
};

/// The process's own group first, then those around it as far as they can be seen: in a container these end at its own
/// mount. Empty without a memory controller. `root` stands before /proc and before the mount points.
std::vector<MemoryCgroup> memory_cgroups(const std::string& root = "");

/// Where the process's own group of version 1 and of version 2 have their files, memory controller or not.
std::vector<std::string> own_cgroup_folders(const std::string& root = "");

}  // namespace rowtide::io
