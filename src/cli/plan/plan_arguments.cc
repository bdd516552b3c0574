#include "cli/plan/plan_arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "cli/failure.h"

namespace rowtide::cli::plan {
namespace {

std::string heading_of(std::string_view group) {
  std::string text(group);
  text.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(text.front())));
  return text;
}

}  // namespace

void declare_options(ArgumentParser& parser, std::deque<GivenOption>& given,
                     std::initializer_list<std::string_view> left_out) {
  for (const sizing::PlanOption& option : sizing::plan_options()) {
    if (std::find(left_out.begin(), left_out.end(), option.name) != left_out.end()) continue;
    GivenOption& one = given.emplace_back(GivenOption{option, std::nullopt, false});
    const std::string name = fmt::format("--{}", option.name);
    parser.heading(heading_of(option.group));
    if (option.value_name.empty()) {
      parser.flag(name, one.is_set, option.help);
    } else {
      parser.optional(name, option.value_name, one.value, option.help);
    }
  }
}

sizing::PlanOptions options_of(const std::optional<std::string>& path, const std::deque<GivenOption>& given) {
  sizing::PlanOptions options;
  if (path) check(set_plan_option(options, "path", *path));
  for (const GivenOption& one : given) {
    if (one.value) check(set_plan_option(options, one.option.name, *one.value));
    if (one.is_set) check(set_plan_option(options, one.option.name, ""));
  }
  return options;
}

}  // namespace rowtide::cli::plan
