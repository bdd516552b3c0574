// A place for models, looked at and read from.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cli/doctor/checks.h"

namespace rowtide::cli::doctor {

/// Finds out what lies below `path`, a file or folder, and reads `subject` for two seconds: nothing of it where that is
/// nothing, a file as it is, of a folder its largest file, or a scratch file where that is small, gone afterwards. What
/// cannot be read is told in the Place. Throws the Failure of a path that is not there.
Place look_at_place(const std::string& path, const std::optional<std::string>& subject, std::uint32_t rows_per_token);

}  // namespace rowtide::cli::doctor
