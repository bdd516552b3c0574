// "Did you mean": the known name nearest to one that is not known.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace rowtide {

/// " (did you mean 'inspect'?)" or, where no name is near, nothing.
std::string suggestion(std::string_view given, std::span<const std::string> known);

}  // namespace rowtide
