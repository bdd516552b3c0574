#include "cli/arguments.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>

#include "base/nearest.h"
#include "cli/failure.h"
#include "cli/input.h"

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

/// Adds an option that hands its one value to `take`.
template <class Take>
CLI::Option* add(CLI::App& app, std::string_view names, std::string_view value_name, std::string_view help, Take take) {
  std::function<void(const std::string&)> function = std::move(take);
  auto* option = app.add_option_function<std::string>(std::string(names), function, std::string(help));
  return option->option_text(std::string(value_name));
}

bool takes_value(const CLI::App& app, const std::string& name) {
  if (!name.starts_with('-')) return false;  // positional arguments have names too
  const CLI::Option* const option = app.get_option_no_throw(name);
  return option != nullptr && option->get_items_expected_min() > 0;
}

/// CLI11 takes `--name=` for `--name` alone, whose value is the next argument: an empty value becomes an argument.
Arguments with_empty_values(const CLI::App& app, const Arguments& given) {
  Arguments arguments;
  for (auto argument = given.begin(); argument != given.end(); ++argument) {
    if (*argument == "--") {  // no options follow
      arguments.insert(arguments.end(), argument, given.end());
      break;
    }
    const std::string name = argument->substr(0, argument->find('='));
    const bool ends_at_equals = argument->size() == name.size() + 1;
    if (argument->starts_with("--") && ends_at_equals && takes_value(app, name)) {
      arguments.insert(arguments.end(), {name, ""});
      continue;
    }
    arguments.push_back(*argument);
    if (takes_value(app, *argument) && argument + 1 != given.end()) arguments.push_back(*++argument);  // whatever it is
  }
  return arguments;
}

}  // namespace

std::string help_footer(std::string_view examples) {
  return fmt::format(
      "Examples:\n{}\n"
      "Exit codes: 0 done; 1 the thing asked about is not so; 2 wrong usage; 3 input that cannot be read or is "
      "refused;\n            4 I/O or resource failure while working",
      examples);
}

ArgumentParser::ArgumentParser(std::string command, std::string_view description, std::string_view examples, bool& json)
    : command_(std::move(command)), app_(std::make_unique<CLI::App>(std::string(description), command_)) {
  app_->set_help_flag("-h,--help", "print this help");
  app_->get_formatter()->column_width(28);
  app_->footer(help_footer(examples));
  flag(kJsonFlag, json, "print one JSON document on standard output and nothing else there");
}

ArgumentParser::~ArgumentParser() = default;

void ArgumentParser::required_path(std::string& value, std::string_view help) {
  add(*app_, "PATH", " ", help, [&value](const std::string& given) { value = given; })->required();
}

void ArgumentParser::optional_path(std::optional<std::string>& value, std::string_view help) {
  add(*app_, "PATH", " ", help, [&value](const std::string& given) { value = given; });
}

void ArgumentParser::required(std::string_view names, std::string_view value_name, std::string& value,
                              std::string_view help) {
  add(*app_, names, value_name, help, [&value](const std::string& given) { value = given; })->required();
}

void ArgumentParser::optional(std::string_view names, std::string_view value_name, std::optional<std::string>& value,
                              std::string_view help) {
  add(*app_, names, value_name, help, [&value](const std::string& given) { value = given; });
}

void ArgumentParser::choice(std::string_view name, const std::vector<std::string>& choices, std::string& value,
                            std::string_view help) {
  app_->add_option(std::string(name), value, std::string(help))
      ->check(CLI::IsMember(choices))
      ->option_text(fmt::format("{}", fmt::join(choices, "|")));
}

void ArgumentParser::number(std::string_view name, std::uint32_t& value, std::uint32_t least, std::uint32_t most,
                            std::string_view help) {
  app_->add_option(std::string(name), value, fmt::format("{} ({})", help, value))
      ->check(CLI::Range(least, most))
      ->option_text("N");
}

void ArgumentParser::byte_size(std::string_view name, std::uint64_t& value, std::string_view help) {
  add(*app_, name, "SIZE", fmt::format("{}: 4GiB, 512MiB, 1.5G; GB and MB count in 1000s", help),
      [option = std::string(name), &value](const std::string& given) { value = parse_size(option, given); });
}

void ArgumentParser::real(std::string_view name, float& value, float most, std::string_view help) {
  auto within = [most](const std::string& given) -> std::string {
    float parsed = NAN;
    bool fits = CLI::detail::lexical_cast(given, parsed) && parsed >= 0 && parsed <= most;  // not a number: does not
    return fits ? "" : fmt::format("Value {} not in range 0 to {}", given, most);
  };
  app_->add_option(std::string(name), value, std::string(help))->check(within)->option_text("X");
}

void ArgumentParser::flag(std::string_view name, bool& value, std::string_view help) {
  app_->add_flag(std::string(name), value, std::string(help));
}

void ArgumentParser::list(std::string_view name, std::string_view value_name, std::vector<std::string>& values,
                          std::string_view help) {
  app_->add_option(std::string(name), values, std::string(help))
      ->expected(1, CLI::detail::expected_max_vector_size)
      ->delimiter(',')
      ->option_text(std::string(value_name));
}

void ArgumentParser::heading(std::string_view text) { app_->option_defaults()->group(std::string(text)); }

void ArgumentParser::hidden(const std::string& name, std::optional<std::string>& value) {
  add(*app_, name, " ", "", [&value](const std::string& given) { value = given; })->group("");
}

void ArgumentParser::refused(const std::string& name, const std::string& reason) {
  add(*app_, name, " ", "", [name, reason](const std::string&) {
    throw usage_failure("{} {}", name, reason);
  })->group("");
}

bool ArgumentParser::parse(const Arguments& given) {
  Arguments arguments = with_empty_values(*app_, given);
  std::ranges::reverse(arguments);  // CLI11 takes them from the back
  try {
    app_->parse(std::move(arguments));
    return true;
  } catch (const CLI::CallForHelp&) {
    fmt::print("{}", app_->help());
    return false;
  } catch (const CLI::ParseError& error) {
    fail_by_extras(error.what());
  }
}

void ArgumentParser::fail(std::string_view what) const { throw usage_failure("{}; see {} --help", what, command_); }

/// Complains about the first argument that nothing took, where there is one: it explains more than what is missing for
/// it.
void ArgumentParser::fail_by_extras(std::string_view otherwise) const {
  auto extras = app_->remaining();
  if (extras.empty()) fail(otherwise);
  auto is_option = [](const std::string& argument) { return argument.starts_with('-') && argument != "-"; };
  auto option = std::find_if(extras.begin(), extras.end(), is_option);
  if (option == extras.end()) fail(fmt::format("unexpected argument '{}'", extras.front()));
  std::string name = option->substr(0, option->find('='));
  fail(fmt::format("unknown option '{}'{}", name, suggestion(name, option_names(*app_))));
}

}  // namespace rowtide::cli
