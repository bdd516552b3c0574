#include "cli/log_sink.h"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "cli/failure.h"
#include "rowtide/log.h"

namespace rowtide::cli {
namespace {

LogLevel wanted_level() {
  const char* value = std::getenv("ROWTIDE_LOG");
  if (value == nullptr) return LogLevel::kInfo;
  if (auto level = log_level_named(value)) return *level;
  throw usage_failure("ROWTIDE_LOG is '{}'; set it to error, warn, info or debug, or unset it", value);
}

}  // namespace

bool debug_log_wanted() { return wanted_level() == LogLevel::kDebug; }

void install_log_sink() {
  LogLevel lowest = wanted_level();
  set_log_sink([lowest](LogLevel level, std::string_view line) {
    if (level <= lowest) std::fputs(fmt::format("rowtide: {}\n", line).c_str(), stderr);  // never throws
  });
}

}  // namespace rowtide::cli
