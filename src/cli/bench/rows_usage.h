// What the process has used so far, as the kernel counts it.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace rowtide::cli {

struct ProcessUsage {
  double cpu_seconds = 0;
  std::uint64_t switches = 0;               // threads that had to wait
  std::optional<std::uint64_t> read_bytes;  // from devices; nothing where the kernel does not count
};
ProcessUsage process_usage();

/// A size of /proc/self/status, in bytes: "VmHWM", "RssAnon". 0 where there is none of that name.
std::uint64_t process_memory(std::string_view name);

/// Memory that the process has to itself, anonymous and shared: all but the pages of files.
std::uint64_t private_memory();

/// Counts the system calls of this process and of threads that it starts later, where the kernel lets us (tracefs
/// mounted, and perf events allowed). Counting slows them down, so it is off but for what is counted.
class SyscallCounter {
 public:
  SyscallCounter();
  ~SyscallCounter();
  SyscallCounter(const SyscallCounter&) = delete;
  SyscallCounter& operator=(const SyscallCounter&) = delete;
  bool works() const { return fd_ >= 0; }
  void start();
  std::optional<std::uint64_t> stop();

 private:
  std::optional<std::uint64_t> counted() const;
  int fd_ = -1;
  std::uint64_t before_ = 0;
};

}  // namespace rowtide::cli
