// A folder as the finders of checkpoints see it: names, and what bears them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "io/file.h"
#include "rowtide/result.h"

namespace rowtide::io {

/// Links are followed: an entry is what its link leads to.
struct FolderEntry {
  std::string name;
  bool is_folder = false;
  std::int64_t modified_ns = 0;  // since the epoch
};

/// What lies in the folder at `path`, ascending by name; links that lead nowhere are left out, one that leads
/// where this process may not look counts as a file. kNotFound, kIo (also of a folder that may be read and not
/// searched); kUnsupported for what is no folder, kResource for one of more than kFolderEntriesMax entries.
Result<std::vector<FolderEntry>> list_folder(const std::string& path);
inline constexpr std::size_t kFolderEntriesMax = 100'000;

/// How a parser lists a folder.
using FolderLister = std::function<Result<std::vector<FolderEntry>>(const std::string& path)>;

/// Files and folders together: the system's, or another for tests and fuzzers.
struct Disk {
  FileOpener open = open_file;
  FolderLister list = list_folder;
};

}  // namespace rowtide::io
