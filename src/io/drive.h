// Which drive a file lies on, and the depth that was found best for it (`rowtide calibrate`).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rowtide/result.h"

namespace rowtide::io {

struct Drive {
  std::string name;      // for people: "vda", "nvme0n1 Samsung SSD 990 PRO", "tmpfs"
  std::string identity;  // the same after a restart and under another name; another drive's differs
  bool in_memory = false;
};

/// The drive below a file or folder: for a partition the whole disk. kNotFound, kIo.
Result<Drive> drive_of(const std::string& path);

inline constexpr std::uint32_t kDepthMax = 1024;

/// What `rowtide calibrate` measures of a drive.
struct DriveFigures {
  std::uint32_t block_bytes = 0;
  double serial_us = 0;                                       // median of one read of a block at a time
  std::vector<std::pair<std::uint32_t, double>> depth_curve;  // reads in flight -> reads a second, ascending
  double sequential_bytes_per_s = 0;
  std::uint32_t best_depth = 0;  // the least within 5 % of the best rate
};

/// Where figures of this drive are kept: rowtide/drive-<16 hex digits> in $XDG_CACHE_HOME or ~/.cache. Empty where the
/// environment names neither.
std::string figures_path(const Drive& drive);

/// Keeps the figures at figures_path(), whole or not at all. kIo.
Result<void> keep_figures(const Drive& drive, const DriveFigures& figures);

/// The figures kept for the drive below `path`. Nothing where none were, or where a file of an older version lacks
/// some; a file that holds none is ignored with one log line.
std::optional<DriveFigures> calibrated_figures(const std::string& path);

/// The best depth kept for the drive below `path`, 1 to kDepthMax. Nothing where none was; a file that holds none is
/// ignored with one log line.
std::optional<std::uint32_t> calibrated_depth(const std::string& path);

}  // namespace rowtide::io
