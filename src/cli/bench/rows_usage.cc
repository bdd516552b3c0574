#include "cli/bench/rows_usage.h"

#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <fstream>
#include <string>

namespace rowtide::cli {
namespace {

double seconds_of(const timeval& time) {
  return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
}

/// The number behind `name:` in a file of /proc.
std::optional<std::uint64_t> proc_number(const char* path, std::string_view name) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(name) && line.size() > name.size() && line[name.size()] == ':') {
      return std::stoull(line.substr(name.size() + 1));
    }
  }
  return std::nullopt;
}

}  // namespace

ProcessUsage process_usage() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return {seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime), static_cast<std::uint64_t>(usage.ru_nvcsw),
          proc_number("/proc/self/io", "read_bytes")};
}

std::uint64_t process_memory(std::string_view name) {
  return 1024 * proc_number("/proc/self/status", name).value_or(0);
}

std::uint64_t private_memory() { return process_memory("RssAnon") + process_memory("RssShmem"); }

SyscallCounter::SyscallCounter() {
  std::ifstream id_file("/sys/kernel/tracing/events/raw_syscalls/sys_enter/id");
  std::uint64_t id = 0;
  if (!(id_file >> id)) return;
  perf_event_attr attributes{};
  attributes.size = sizeof attributes;
  attributes.type = PERF_TYPE_TRACEPOINT;
  attributes.config = id;
  attributes.disabled = 1;
  attributes.inherit = 1;
  fd_ = static_cast<int>(::syscall(SYS_perf_event_open, &attributes, 0, -1, -1, PERF_FLAG_FD_CLOEXEC));
}

SyscallCounter::~SyscallCounter() {
  if (fd_ >= 0) ::close(fd_);
}

void SyscallCounter::start() {
  ::ioctl(fd_, PERF_EVENT_IOC_ENABLE, 0);
  before_ = counted().value_or(0);
}

std::optional<std::uint64_t> SyscallCounter::stop() {
  ::ioctl(fd_, PERF_EVENT_IOC_DISABLE, 0);
  const auto after = counted();
  if (!after) return std::nullopt;
  return *after - before_ - 1;  // less the one that ends the counting
}

std::optional<std::uint64_t> SyscallCounter::counted() const {
  std::uint64_t count = 0;
  if (::read(fd_, &count, sizeof count) != sizeof count) return std::nullopt;
  return count;
}

}  // namespace rowtide::cli
