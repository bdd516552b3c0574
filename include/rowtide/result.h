// What every call of the library hands back: a value, or one Error. The library never throws across
// its API, never prints and never exits.
#pragma once

#include <cassert>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace rowtide {

enum class ErrorCode {
  kUsage,        // the caller asked for something that makes no sense (wrong span size, unknown name)
  kNotFound,     // a file or a table that is not there
  kMalformed,    // bytes that contradict their format or themselves
  kUnsupported,  // well-formed, but of a kind this version does not serve
  kMismatch,     // two sources of one fact disagree (stored against derived constants)
  kOutOfRange,   // a row id outside the table
  kIo,           // the operating system refused or failed a read
  kResource,     // memory, descriptors or another limit is exhausted
};

/// Stable lower-case name of a code ("malformed"), as printed by the command line's --json.
std::string_view error_code_name(ErrorCode code);

/// One failure: its kind, and one sentence that names file, tensor, row, offset or value.
struct Error {
  ErrorCode code;
  std::string message;
};

/// A value or an Error. Reading the side that is not there is a programming error (asserted).
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT(google-explicit-constructor)
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT(google-explicit-constructor)

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  T& operator*() & { return *std::get_if<0>(&state_); }
  const T& operator*() const& { return *std::get_if<0>(&state_); }
  T&& operator*() && { return std::move(*std::get_if<0>(&state_)); }
  T* operator->() { return std::get_if<0>(&state_); }
  const T* operator->() const { return std::get_if<0>(&state_); }

  const Error& error() const& {
    assert(!ok());
    return *std::get_if<1>(&state_);
  }
  Error&& error() && {
    assert(!ok());
    return std::move(*std::get_if<1>(&state_));
  }

 private:
  std::variant<T, Error> state_;
};

/// Success, or an Error.
template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)), ok_(false) {}  // NOLINT(google-explicit-constructor)

  bool ok() const { return ok_; }
  explicit operator bool() const { return ok_; }
  const Error& error() const& {
    assert(!ok_);
    return error_;
  }
  Error&& error() && {
    assert(!ok_);
    return std::move(error_);
  }

 private:
  Error error_{};
  bool ok_ = true;
};

}  // namespace rowtide
