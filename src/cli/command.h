// The commands of the program.
#pragma once

#include <string_view>

#include "cli/arguments.h"
#include "cli/failure.h"

namespace rowtide::cli {

struct Command {
  std::string_view name;
  std::string_view summary;
  ExitCode (*run)(const Arguments& arguments);  // or throws Failure
};

ExitCode run_doctor(const Arguments& arguments);
ExitCode run_inspect(const Arguments& arguments);
ExitCode run_address(const Arguments& arguments);
ExitCode run_rows(const Arguments& arguments);
ExitCode run_generate(const Arguments& arguments);
ExitCode run_bench(const Arguments& arguments);
ExitCode run_calibrate(const Arguments& arguments);
ExitCode run_plan(const Arguments& arguments);
ExitCode run_serve(const Arguments& arguments);
ExitCode run_ui(const Arguments& arguments);
ExitCode run_try(const Arguments& arguments);

}  // namespace rowtide::cli
