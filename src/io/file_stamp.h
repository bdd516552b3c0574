// What tells a file from one that later stands in its place, or from itself after it was written to.
#pragma once

#include <sys/stat.h>
#include <xxhash.h>

#include <array>
#include <cstdint>

namespace rowtide::io {

/// Over device, inode, length and time of the last change of content. Never 0, which is for what is no file of a disk.
inline std::uint64_t file_stamp(const struct stat& status) {
  const std::array<std::uint64_t, 5> told = {status.st_dev, status.st_ino, static_cast<std::uint64_t>(status.st_size),
                                             static_cast<std::uint64_t>(status.st_mtim.tv_sec),
                                             static_cast<std::uint64_t>(status.st_mtim.tv_nsec)};
  return XXH3_64bits(told.data(), sizeof(told)) | 1;
}

}  // namespace rowtide::io
