// The checks: each looks at one room of the machine and says what it finds. All they know of the machine is handed in:
// a root that stands before /proc and /sys, and what was tried beforehand. So tests show them any machine.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/doctor/engine_probe.h"
#include "cli/doctor/finding.h"
#include "io/drive.h"
#include "io/measure_drive.h"
#include "io/mounts.h"
#include "io/system_memory.h"
#include "io/uring_queue.h"
#include "rowtide/checkpoint.h"
#include "rowtide/result.h"

namespace rowtide::cli::doctor {

/// What a reader registers with its ring, at least (src/store/run_reader.cc).
inline constexpr std::uint64_t kReaderBufferBytes = std::uint64_t{4} << 20;

/// The system as the kernel describes it below `root`, and what it said when it was tried.
struct System {
  std::string root;
  io::UringRefusals uring;
  std::string_view instruction_set;             // of the row decoders that are used: "scalar", "avx2", ...
  std::optional<std::uint64_t> shm_bytes = {};  // size of /dev/shm, where there is one
};

/// kernel, io_uring, locked_memory, open_files, cpu.
Findings check_system(const System& system);

/// memory, cgroup, swap, huge_pages, shared_memory, unified_memory.
Findings check_memory(const System& system);

/// Where models lie, or would lie, and how reads go there.
struct Place {
  std::string path;  // the file or folder asked about
  std::optional<io::Mount> mount;
  io::Drive drive;
  bool opened = false;                // for reads, in the way that works
  bool by_uring = false;              // else by threads
  bool direct = false;                // reads go past the page cache
  std::uint32_t block_bytes = 0;      // of direct reads
  std::string why_not_direct;         // the reason as the library logs it
  std::optional<std::string> failed;  // why nothing could be read there
  bool scratch = false;               // read was a file just written
  std::optional<io::DriveGlance> glance;
  std::optional<std::uint32_t> calibrated_depth;
  std::uint32_t rows_per_token = 0;  // of the checkpoint asked about; 0: none
};

/// file_system, direct_io, drive, calibration.
Findings check_storage(const Place& place);

/// checkpoint, table_memory. `available` is what this process may take, the table's pages not counted.
Findings check_checkpoint(const Result<Checkpoint>& checkpoint, const Result<io::AvailableMemory>& available);

/// The budget to begin with: the whole table where that leaves half of what is available beside the checkpoint's other
/// weights, else the standard one. Whole MiB. `checkpoint` may be null.
std::uint64_t suggested_memory_bytes(const Checkpoint* checkpoint, const Result<io::AvailableMemory>& available);

/// llama_server, plug_in.
Findings check_engine(const EngineProbe& probe);

}  // namespace rowtide::cli::doctor
