// The options of a plan on the command line, for every command that makes one.
#pragma once

#include <deque>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "cli/arguments.h"
#include "sizing/request.h"

namespace rowtide::cli::plan {

/// An option of the sizing engine's list, as given.
struct GivenOption {
  const sizing::PlanOption& option;
  std::optional<std::string> value;
  bool is_set = false;  // of a flag
};

/// Declares all options of the list but `left_out`, under the headings of their groups. `given` must outlive the
/// parser.
void declare_options(ArgumentParser& parser, std::deque<GivenOption>& given,
                     std::initializer_list<std::string_view> left_out = {});

/// In the order of the list, so that of two values that will not do the same one is named whatever the order given.
/// Throws the Failure that names option and value.
sizing::PlanOptions options_of(const std::optional<std::string>& path, const std::deque<GivenOption>& given);

}  // namespace rowtide::cli::plan
