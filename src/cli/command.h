// The commands, and how each reads its arguments.
#pragma once

#include <CLI/CLI.hpp>

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/failure.h"

namespace rowtide::cli {

using Arguments = std::vector<std::string>;  // after the command's name

struct Command {
  std::string_view name;
  std::string_view summary;
  ExitCode (*run)(const Arguments& arguments);  // or throws Failure
};

ExitCode run_inspect(const Arguments& arguments);
ExitCode run_address(const Arguments& arguments);
ExitCode run_rows(const Arguments& arguments);
ExitCode run_generate(const Arguments& arguments);

inline constexpr std::string_view kJsonFlag = "--json";

/// Adds --json.
void add_json_flag(CLI::App& app, bool& json);

/// The end of a command's help: examples, one a line, and the exit codes.
std::string help_footer(std::string_view examples);

/// Reads `arguments` into what `app` is bound to. False when help was asked for and has been printed. Throws a usage
/// Failure that names the argument, with the nearest option where one is unknown.
bool parse(CLI::App& app, const Arguments& arguments);

}  // namespace rowtide::cli
