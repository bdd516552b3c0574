// What the kernel says this process holds.
#pragma once

#include <cstdint>
#include <fstream>
#include <string>

namespace rowtide {

/// A number of a file of /proc, after its name: process_number("/proc/self/io", "read_bytes:").
inline std::uint64_t process_number(const char* path, const std::string& name) {
  std::ifstream file(path);
  for (std::string word; file >> word;) {
    std::uint64_t number = 0;
    if (word == name && file >> number) return number;
  }
  return 0;
}

/// Private memory, huge pages included.
inline std::uint64_t anonymous_bytes() { return process_number("/proc/self/smaps_rollup", "Anonymous:") * 1024; }

/// All memory at its peak since restart_peak().
inline std::uint64_t peak_bytes() { return process_number("/proc/self/status", "VmHWM:") * 1024; }
inline void restart_peak() { std::ofstream("/proc/self/clear_refs") << 5 << std::flush; }

}  // namespace rowtide
