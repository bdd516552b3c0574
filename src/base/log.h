// The library's side of the log sink (rowtide/log.h).
#pragma once

#include <fmt/format.h>

#include <utility>

#include "rowtide/log.h"

namespace rowtide {

/// As log_line, but a line that was logged before is dropped.
void log_line_once(LogLevel level, std::string_view line);

template <class... Args>
void log(LogLevel level, fmt::format_string<Args...> format, Args&&... args) {
  log_line(level, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace rowtide
