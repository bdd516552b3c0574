// The program `rowtide`: finds the command, runs it, reports how it ended.

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <new>

#include "base/error.h"
#include "base/nearest.h"
#include "base/printable.h"
#include "cli/command.h"
#include "cli/json_output.h"
#include "cli/log_sink.h"

namespace rowtide::cli {
namespace {

constexpr std::array<Command, 11> kCommands = {{
    {"doctor", "what this machine can do, what is wrong with it, and what mends it", run_doctor},
    {"inspect", "what is in a checkpoint", run_inspect},
    {"address", "token ids to row ids", run_address},
    {"rows", "rows of a table, by id", run_rows},
    {"generate", "text from a model whose table stays on disk", run_generate},
    {"try", "llama.cpp by itself against Rowtide, on this machine and model", run_try},
    {"bench", "measures rows and caches on this machine", run_bench},
    {"plan", "what of a model fits where on which machine, how fast it will be, what to type", run_plan},
    {"serve", "llama-server with the plug-in and a plan's flags, watched until it is stopped", run_serve},
    {"ui", "a page on which plans are explored, in a browser on this machine", run_ui},
    {"calibrate", "what a drive can do, and the depth to read it at", run_calibrate},
}};

void print_help() {
  fmt::print(
      "Rowtide serves the rows of a model's conditional-memory table in place, from the published file.\n\n"
      "Usage: rowtide COMMAND [OPTIONS]\n\nCommands:\n");
  for (const Command& command : kCommands) fmt::print("  {:<12}{}\n", command.name, command.summary);
  fmt::print(
      "\nOptions:\n"
      "  {:<12}this help; after a command, that command's\n"
      "  {:<12}the version\n"
      "\n{}\n\n"
      "Environment: ROWTIDE_LOG is the level of log lines on standard error: error, warn, info (default) or debug\n",
      "--help, -h", "--version",
      help_footer("  rowtide inspect models/tidepool.gguf\n"
                  "  rowtide generate -m models/tidepool.gguf -p 'The server process'\n"
                  "  rowtide rows --help\n"));
}

const Command& command_named(const std::string& name) {
  auto command = std::find_if(kCommands.begin(), kCommands.end(), [&](const Command& c) { return c.name == name; });
  if (command != kCommands.end()) return *command;
  std::vector<std::string> names;
  for (const Command& known : kCommands) names.emplace_back(known.name);
  throw usage_failure("unknown command '{}'{}; see rowtide --help", name, suggestion(name, names));
}

ExitCode run(const Arguments& arguments) {
  install_log_sink();
  if (arguments.empty()) throw usage_failure("no command given; see rowtide --help");
  const std::string& first = arguments.front();
  if (first == "--help" || first == "-h") {
    print_help();
    return kExitDone;
  }
  if (first == "--version") {
    fmt::print("rowtide {}\n", ROWTIDE_VERSION);
    return kExitDone;
  }
  return command_named(first).run(Arguments(arguments.begin() + 1, arguments.end()));
}

/// Runs, and sees to it that what was printed has arrived.
ExitCode run_and_flush(const Arguments& arguments) {
  ExitCode code = run(arguments);
  flush_output();
  return code;
}

ExitCode report(const Failure& failure, const Arguments& arguments) {
  std::fputs(fmt::format("rowtide: {}\n", without_controls(failure.what())).c_str(), stderr);
  if (std::find(arguments.begin(), arguments.end(), kJsonFlag) != arguments.end()) {
    print_json({{"error", {{"code", failure.code()}, {"message", failure.what()}}}});
  }
  return failure.exit_code();
}

/// A standard stream that was closed would be given to the next file that is opened, and written into. Takes its place
/// with something that refuses what the stream is for.
void occupy_closed_streams() {
  for (int descriptor = 0; descriptor <= 2; ++descriptor) {
    if (::fcntl(descriptor, F_GETFD) >= 0) continue;
    ::open("/dev/null", descriptor == 0 ? O_WRONLY : O_RDONLY);  // the lowest free number is this one
  }
}

}  // namespace
}  // namespace rowtide::cli

int main(int argc, char** argv) {
  using namespace rowtide::cli;
  occupy_closed_streams();
  Arguments arguments(argv + std::min(argc, 1), argv + argc);
  try {
    return run_and_flush(arguments);
  } catch (const Failure& failure) {
    return report(failure, arguments);
  } catch (const std::bad_alloc&) {
    return report(Failure(kExitFailed, "resource", "out of memory"), arguments);
  } catch (const std::exception& error) {
    return report(Failure(kExitFailed, "io", error.what()), arguments);
  }
}
