#include "io/folder.h"

#include <dirent.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <utility>

#include "base/error.h"

namespace rowtide::io {
namespace {

Error folder_error(const std::string& path, int error) {
  const ErrorCode code = error == ENOENT    ? ErrorCode::kNotFound
                         : error == ENOTDIR ? ErrorCode::kUnsupported
                                            : ErrorCode::kIo;
  return make_error(code, "{}: cannot be listed: {}", path, errno_text(error));
}

struct CloseFolder {
  void operator()(DIR* folder) const { ::closedir(folder); }
};

}  // namespace

Result<std::vector<FolderEntry>> list_folder(const std::string& path) {
  const std::unique_ptr<DIR, CloseFolder> folder(::opendir(path.c_str()));
  if (!folder) return folder_error(path, errno);
  const int descriptor = ::dirfd(folder.get());
  struct stat status{};
  // Names can be read in a folder that may not be searched, and then nothing is known of any.
  if (descriptor < 0 || ::fstatat(descriptor, ".", &status, 0) != 0) return folder_error(path, errno);
  std::vector<FolderEntry> entries;
  while (true) {
    errno = 0;
    const dirent* found = ::readdir(folder.get());
    if (found == nullptr && errno != 0) return folder_error(path, errno);
    if (found == nullptr) break;
    std::string name = found->d_name;
    if (name == "." || name == "..") continue;
    if (::fstatat(descriptor, name.c_str(), &status, 0) != 0) {
      if (errno != EACCES) continue;  // leads nowhere, or has just gone
      status = {};                    // opening it will say so
    }
    if (entries.size() == kFolderEntriesMax) {
      return make_error(ErrorCode::kResource, "{}: holds more than {} entries, the limit", path, kFolderEntriesMax);
    }
    const std::int64_t modified_ns = std::int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec;
    entries.push_back({std::move(name), S_ISDIR(status.st_mode), modified_ns});
  }
  std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return entries;
}

}  // namespace rowtide::io
