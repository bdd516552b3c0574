// How much memory there is for this process, and which fact bounds it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "io/memory_cgroup.h"
#include "rowtide/result.h"

namespace rowtide::io {

/// Bytes of a file.
struct FileRange {
  std::string path;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};

/// Each term of available_memory() at one moment.
struct AvailableMemory {
  std::uint64_t total_bytes = 0;       // of the machine
  std::uint64_t free_bytes = 0;        // used by nobody: for messages alone, a machine in use has next to none
  std::uint64_t available_bytes = 0;   // the kernel's estimate for the machine: free, or taken back at need
  std::optional<MemoryCgroup> cgroup;  // the one that leaves least, of those with a limit
  std::uint64_t mapped_bytes = 0;      // files this process has mapped, see available_memory()
  std::optional<std::uint64_t> address_space_limit_bytes;  // RLIMIT_AS
  std::uint64_t address_space_bytes = 0;                   // taken of it

  /// What this process may still take.
  std::uint64_t bytes() const;
  /// bytes() and the fact that bounds it, without a full stop: "3.200 GiB: the cgroup /sys/fs/cgroup/a allows 4.000 GiB
  /// and holds 0.800 GiB".
  std::string text() const;
};

/// What this process may still take without being killed and without driving out the files it has mapped. Reads a few
/// files of /proc and of the cgroups; any thread.
///
/// The kernel counts file pages as available: those that are in memory because it may drop them, those not read yet
/// because they take nothing so far. But an engine needs the weights it maps, so all that this process has mapped of
/// files on disk is taken off, once, read or not. Not taken off are: `not_counted`, the tables that are read row by
/// row; what is locked in memory, which the kernel does not count as available; files of file systems in memory
/// (/dev/shm) and device memory, which it does not count either. A cgroup is treated alike: its page cache counts as
/// free, the mapped files do not. File pages that another cgroup was charged for cannot be told from this one's: there
/// the figure is on the safe side.
///
/// `root` stands before /proc and /sys. kUnsupported where /proc/meminfo is missing or does not name MemAvailable.
Result<AvailableMemory> available_memory(const std::vector<FileRange>& not_counted = {}, const std::string& root = "");

}  // namespace rowtide::io
