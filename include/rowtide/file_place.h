// From an address in a file mapping of this process to the place in the file: for engines that have
// mapped a checkpoint and hand out pointers into it.
#pragma once

#include <cstdint>
#include <string>

#include "rowtide/result.h"

namespace rowtide {

struct FilePlace {
  std::string path;
  std::uint64_t offset = 0;
  std::string inode;  // which file it is, in the process map's words; a path may come to lead to another
};

/// Where [data, data + bytes) lies on disk, if it is one stretch of one file, mapped read-only, and the file is still
/// the one its path leads to. kNotFound otherwise, saying why: the bytes are then to be had from memory only.
Result<FilePlace> find_file_place(const void* data, std::uint64_t bytes);

/// Whether the place's path still leads to the very file that was found.
bool is_still_there(const FilePlace& place);

}  // namespace rowtide
