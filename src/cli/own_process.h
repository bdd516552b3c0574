// This program once more, as a process of its own: for measurements that must not disturb each other.
#pragma once

#include <string>

#include "cli/arguments.h"
#include "cli/json_output.h"

namespace rowtide::cli {

/// Runs it with `arguments` and --json, and `input` on its standard input; what it says on standard error appears on
/// ours, from level error down unless ROWTIDE_LOG is set. The document that it prints. Throws the Failure that it ended
/// with.
Json run_own_process(Arguments arguments, const std::string& input);

}  // namespace rowtide::cli
