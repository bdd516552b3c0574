#include "base/log.h"

#include <mutex>
#include <set>
#include <string>

namespace rowtide {
namespace {

struct LogState {
  std::mutex mutex;
  LogSink sink;
  std::set<std::string, std::less<>> said;
};

LogState& state() {
  static LogState instance;
  return instance;
}

}  // namespace

std::optional<LogLevel> log_level_named(std::string_view name) {
  if (name == "error") return LogLevel::kError;
  if (name == "warn") return LogLevel::kWarn;
  if (name == "info") return LogLevel::kInfo;
  if (name == "debug") return LogLevel::kDebug;
  return std::nullopt;
}

void set_log_sink(LogSink sink) {
  std::lock_guard lock(state().mutex);
  state().sink = std::move(sink);
}

void log_line(LogLevel level, std::string_view line) {
  std::lock_guard lock(state().mutex);
  if (state().sink) state().sink(level, line);
}

void log_line_once(LogLevel level, std::string_view line) {
  std::lock_guard lock(state().mutex);
  if (!state().said.emplace(line).second) return;
  if (state().sink) state().sink(level, line);
}

}  // namespace rowtide
