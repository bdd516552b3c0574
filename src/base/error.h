// Making an Error with a formatted sentence.
#pragma once

#include <fmt/format.h>

#include <new>
#include <utility>

#include "rowtide/result.h"

namespace rowtide {

template <class... Args>
Error make_error(ErrorCode code, fmt::format_string<Args...> format, Args&&... args) {
  return Error{code, fmt::format(format, std::forward<Args>(args)...)};
}

/// Runs `body`, which gives a Result, and turns lack of memory into an Error: nothing is thrown across the API.
template <class Body>
auto without_throwing(Body body) -> decltype(body()) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::kResource, "out of memory"};  // short enough to need none
  }
}

/// "permission denied (errno 13)": the words for an errno value, for the end of a sentence.
std::string errno_text(int errno_value);

}  // namespace rowtide
