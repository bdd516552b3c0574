#include "cli/drive_subject.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <system_error>

#include "cli/failure.h"
#include "cli/progress.h"

namespace rowtide::cli {
namespace {

constexpr std::uint64_t kLargeFileBytes = std::uint64_t{1} << 30;

/// The largest readable file of a GiB or more that lies in the folder and is no sparse one.
std::optional<std::string> large_file_in(const std::string& folder) {
  std::optional<std::string> largest;
  std::uint64_t most = kLargeFileBytes - 1;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    struct stat info{};
    if (::stat(entry.path().c_str(), &info) != 0 || !S_ISREG(info.st_mode)) continue;
    const auto bytes = static_cast<std::uint64_t>(info.st_size);
    const bool whole = static_cast<std::uint64_t>(info.st_blocks) * 512 >= bytes - bytes / 64;
    if (bytes <= most || !whole || ::access(entry.path().c_str(), R_OK) != 0) continue;
    most = bytes;
    largest = entry.path().string();
  }
  return largest;
}

}  // namespace

DriveSubject drive_subject_of(const std::string& path, std::uint64_t scratch_bytes) {
  if (!std::filesystem::is_directory(path)) return {path, std::nullopt};
  if (auto large = large_file_in(path)) return {std::move(large), std::nullopt};
  Progress progress("writing a scratch file");
  return {std::nullopt,
          value_of(io::ScratchFile::make(path, scratch_bytes, [&](double share) { progress.update(share); }))};
}

}  // namespace rowtide::cli
