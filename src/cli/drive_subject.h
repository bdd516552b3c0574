// What is read to measure a drive: a large file that is there already, or a scratch file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "io/scratch_file.h"

namespace rowtide::cli {

struct DriveSubject {
  std::optional<std::string> existing;
  std::optional<io::ScratchFile> scratch;  // gone with this

  std::string path() const { return existing ? *existing : scratch->path(); }
};

/// `path` itself where it is a file; of a folder the largest file of 1 GiB or more that can be read, else a scratch
/// file of up to `scratch_bytes`, written with a progress bar. Throws Failure.
DriveSubject drive_subject_of(const std::string& path, std::uint64_t scratch_bytes);

}  // namespace rowtide::cli
