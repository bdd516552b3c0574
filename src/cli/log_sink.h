// The library's log lines on standard error.
#pragma once

namespace rowtide::cli {

/// Whether ROWTIDE_LOG asks for everything, other libraries' lines included.
bool debug_log_wanted();

/// Prints the library's lines as "rowtide: ..." on standard error, down to the level that ROWTIDE_LOG names (error,
/// warn, info, debug; info where it is not set). Throws a usage Failure for another value.
void install_log_sink();

}  // namespace rowtide::cli
