#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "cli/doctor/checks.h"
#include "cli/text_table.h"
#include "rowtide/byte_size.h"

namespace rowtide::cli::doctor {
namespace {

constexpr double kDiskReadsPerS = 2'000;     // below: a hard disk, a throttled or a far drive
constexpr double kModestReadsPerS = 20'000;  // below: fine for decoding, slow for long prompts

constexpr const char* kMoveFix = "copy the model to ext4 or XFS on an NVMe drive of this machine";

enum class FileSystemKind { kLocal, kMemory, kNetwork, kProgram, kOwnCache };

/// By the names that the kernel gives its file systems in /proc/self/mountinfo.
FileSystemKind kind_of(std::string_view type) {
  static constexpr std::array<std::string_view, 2> kMemory = {"tmpfs", "ramfs"};
  static constexpr std::array<std::string_view, 14> kNetwork = {
      "nfs",    "nfs4", "cifs",   "smb3",     "9p",       "ceph",       "afs",
      "lustre", "gpfs", "beegfs", "virtiofs", "orangefs", "fuse.sshfs", "fuse.glusterfs"};
  if (std::ranges::find(kMemory, type) != kMemory.end()) return FileSystemKind::kMemory;
  if (std::ranges::find(kNetwork, type) != kNetwork.end()) return FileSystemKind::kNetwork;
  if (type == "zfs") return FileSystemKind::kOwnCache;
  return type.starts_with("fuse") ? FileSystemKind::kProgram : FileSystemKind::kLocal;
}

Finding check_file_system(const Place& place) {
  Finding found{"file_system", Group::kStorage, Level::kOk, "", "", ""};
  if (!place.mount) {
    found.level = Level::kNote;
    found.finding = place.path + " lies on a mount that the kernel does not name";
    return found;
  }
  found.finding = fmt::format("{} lies on {}, mounted at {}", place.path, place.mount->type, place.mount->point);
  switch (kind_of(place.mount->type)) {
    case FileSystemKind::kLocal: break;
    case FileSystemKind::kMemory:
      found.level = Level::kNote;
      found.meaning = "a file there takes memory as a whole, which Rowtide is there to spare";
      found.fix = kMoveFix;
      break;
    case FileSystemKind::kNetwork:
      found.level = Level::kWarning;
      found.meaning = "each cold row is a request to another machine or to the virtual machine's host";
      found.fix = kMoveFix;
      break;
    case FileSystemKind::kProgram:
      found.level = Level::kNote;
      found.meaning = "a program answers its reads, which takes longer than the kernel's own file systems do";
      found.fix = kMoveFix;
      break;
    case FileSystemKind::kOwnCache:
      found.level = Level::kNote;
      found.meaning =
          "before OpenZFS 2.3 direct reads go through its cache all the same, which takes memory of its own";
      found.fix = "bound the cache: echo BYTES | sudo tee /sys/module/zfs/parameters/zfs_arc_max";
      break;
  }
  return found;
}

Finding check_direct_io(const Place& place) {
  Finding found{"direct_io", Group::kStorage, Level::kOk, "", "", ""};
  if (place.direct) {
    found.finding = fmt::format("works, in blocks of {} bytes", grouped(place.block_bytes));
    return found;
  }
  found.level = Level::kWarning;
  found.finding = place.why_not_direct;
  found.meaning =
      "reads go through the page cache, by threads: the table's pages take memory beside Rowtide's budget, and each "
      "row costs more processor time";
  found.fix = kMoveFix;
  return found;
}

/// "; a token's 16 rows: 0.3 ms cold, prompts at most 6,000 tokens/s": what the drive allows the checkpoint asked
/// about. A row is one read; a step's reads are all in flight at once, so a token takes one read's time at least.
std::string allowed_text(const Place& place) {
  if (place.rows_per_token == 0) return "";
  const double token_s = std::max(place.glance->serial_us / 1e6, place.rows_per_token / place.glance->reads_per_s);
  return fmt::format(
      "; a token's {} rows take {:.1f} ms when none is cached, prompts of new n-grams run at {} tokens/s at most",
      place.rows_per_token, 1e3 * token_s,
      grouped(static_cast<std::uint64_t>(place.glance->reads_per_s / place.rows_per_token)));
}

Finding check_drive(const Place& place) {
  Finding found{"drive", Group::kStorage, Level::kOk, "", "", ""};
  if (!place.glance) {
    found.level = Level::kNote;
    found.finding =
        fmt::format("{}: not measured: {}", place.drive.name, place.failed.value_or("there is no file to read"));
    found.meaning = "how fast cold rows come is not known";
    found.fix = "rowtide calibrate FOLDER, with a folder that may be written to and 128 MiB free";
    return found;
  }
  const io::DriveGlance& glance = *place.glance;
  found.finding = fmt::format("{}: one read {:.0f} us; {} reads/s {}, {:.1f} times one by one{}", place.drive.name,
                              glance.serial_us, grouped(static_cast<std::uint64_t>(glance.reads_per_s)),
                              place.by_uring ? fmt::format("at {} in flight", glance.depth) : "by 16 threads",
                              glance.reads_per_s * glance.serial_us / 1e6, allowed_text(place));
  if (!place.direct) found.finding += " (through the page cache, so partly from memory)";
  if (place.drive.in_memory) return found;
  if (place.scratch) found.finding += " (a file just written; a drive's own cache may have helped)";
  if (glance.reads_per_s >= kModestReadsPerS) return found;
  const bool disk = glance.reads_per_s < kDiskReadsPerS;
  found.level = disk ? Level::kWarning : Level::kNote;
  found.meaning = disk ? "as slow as a hard disk, or throttled: cold rows hold generation up"
                       : "enough for generation; long prompts wait for cold rows";
  found.fix = std::string(kMoveFix) + ", or give a --memory that holds the whole table";
  return found;
}

/// As one word of a shell's command line.
std::string in_shell(const std::string& path) {
  std::string word = "'";
  for (const char c : path) word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return word + "'";
}

Finding check_calibration(const Place& place) {
  Finding found{"calibration", Group::kStorage, Level::kOk, "", "", ""};
  if (place.calibrated_depth) {
    found.finding = fmt::format("kept for this drive: {} reads in flight", *place.calibrated_depth);
    return found;
  }
  found.level = Level::kNote;
  found.finding = "none is kept for this drive";
  found.meaning = "stores keep 256 reads in flight, which may be more than the drive gains by";
  found.fix = fmt::format("rowtide calibrate {}", in_shell(place.path));
  return found;
}

}  // namespace

Findings check_storage(const Place& place) {
  Findings found{check_file_system(place)};
  if (place.opened) found.push_back(check_direct_io(place));
  found.push_back(check_drive(place));
  if (place.direct && !place.drive.in_memory) found.push_back(check_calibration(place));
  return found;
}

}  // namespace rowtide::cli::doctor
