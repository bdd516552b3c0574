// Making an Error with a formatted sentence.
#pragma once

#include <fmt/format.h>

#include <utility>

#include "rowtide/result.h"

namespace rowtide {

template <class... Args>
Error make_error(ErrorCode code, fmt::format_string<Args...> format, Args&&... args) {
  return Error{code, fmt::format(format, std::forward<Args>(args)...)};
}

/// "permission denied (errno 13)": the words for an errno value, for the end of a sentence.
std::string errno_text(int errno_value);

}  // namespace rowtide
