// What a drive can do: latency, reads a second by depth, sequential speed.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <utility>

#include "io/block_source.h"
#include "io/drive.h"

namespace rowtide::io {

inline constexpr std::uint32_t kDepthMeasuredMax = 256;

/// Measures by reading the source's first file for some four seconds, longer on a drive of less than 1,000 reads a
/// second: random blocks, none twice as long as there are others. Depths double from 1 to kDepthMeasuredMax; those
/// whose reads take the drive longer than half a second are left out. `progress` is told the share done, 0 to 1. `seed`
/// decides which blocks are read. kIo, kResource; kUsage for a file of less than 256 blocks.
Result<DriveFigures> measure_drive(BlockSource& source, std::uint64_t seed,
                                   const std::function<void(double share)>& progress);

/// What two seconds tell of a drive.
struct DriveGlance {
  double serial_us = 0;     // median of one read of a block at a time
  std::uint32_t depth = 0;  // reads in flight
  double reads_per_s = 0;   // with so many
};

/// As measure_drive(), at one depth, 1 to kDepthMeasuredMax, or fewer reads where so many, one after
/// the other, would take longer than half a second.
Result<DriveGlance> glance_at_drive(BlockSource& source, std::uint32_t depth, std::uint64_t seed,
                                    const std::function<void(double share)>& progress);

/// The least depth whose rate is within 5 % of the best. `curve` is not empty.
std::uint32_t best_depth(std::span<const std::pair<std::uint32_t, double>> curve);

}  // namespace rowtide::io
