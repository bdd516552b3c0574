#include "cli/command.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "cli/nearest.h"

namespace rowtide::cli {
namespace {

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;  // hidden
    for (const auto& name : option->get_lnames()) names.push_back("--" + name);
    for (const auto& name : option->get_snames()) names.push_back("-" + name);
  }
  return names;
}

/// The complaint about the first argument that nothing took; nothing if all were taken.
std::optional<Failure> complaint_about_extras(const CLI::App& app) {
  auto extras = app.remaining();
  if (extras.empty()) return std::nullopt;
  auto is_option = [](const std::string& argument) { return argument.starts_with('-') && argument != "-"; };
  auto option = std::find_if(extras.begin(), extras.end(), is_option);
  if (option == extras.end()) {
    return usage_failure("unexpected argument '{}'; see {} --help", extras.front(), app.get_name());
  }
  std::string name = option->substr(0, option->find('='));
  return usage_failure("unknown option '{}'{}; see {} --help", name, suggestion(name, option_names(app)),
                       app.get_name());
}

}  // namespace

void add_json_flag(CLI::App& app, bool& json) {
  app.add_flag(std::string(kJsonFlag), json, "print one JSON document on standard output and nothing else there");
}

std::string help_footer(std::string_view examples) {
  return fmt::format(
      "Examples:\n{}\n"
      "Exit codes: 0 done; 1 the thing asked about is not so; 2 wrong usage; 3 input that cannot be read or is "
      "refused;\n            4 I/O or resource failure while working",
      examples);
}

bool parse(CLI::App& app, const Arguments& arguments) {
  app.set_help_flag("-h,--help", "print this help");
  app.get_formatter()->column_width(28);
  try {
    app.parse(Arguments(arguments.rbegin(), arguments.rend()));  // CLI11 takes them from the back
    return true;
  } catch (const CLI::CallForHelp&) {
    fmt::print("{}", app.help());
    return false;
  } catch (const CLI::ParseError& error) {
    if (auto complaint = complaint_about_extras(app)) throw *complaint;
    throw usage_failure("{}; see {} --help", error.what(), app.get_name());
  }
}

}  // namespace rowtide::cli
