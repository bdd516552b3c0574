// Where the library says what a person should know (a fall-back taken, a feature refused). Silent
// until a client installs a sink; the command line and the engine plug-ins do.
#pragma once

#include <functional>
#include <optional>
#include <string_view>

namespace rowtide {

enum class LogLevel { kError, kWarn, kInfo, kDebug };

/// The level called "error", "warn", "info" or "debug", as in the environment variable ROWTIDE_LOG.
std::optional<LogLevel> log_level_named(std::string_view name);

using LogSink = std::function<void(LogLevel level, std::string_view line)>;

/// Installs the process-wide sink; lines carry no newline. An empty sink silences the library.
/// Threads: callable from any; the sink is called by whichever thread has something to say, one at a time.
void set_log_sink(LogSink sink);

/// Hands a line to the sink, for clients whose words should go where the library's go.
void log_line(LogLevel level, std::string_view line);

}  // namespace rowtide
