// How a command ends. Inside the command line a failure is an exception; main.cc alone reports it.
#pragma once

#include <fmt/format.h>

#include <exception>
#include <string>
#include <utility>

#include "rowtide/result.h"

namespace rowtide::cli {

/// The program's exit codes, as documented in docs/cli.md.
enum ExitCode : int {
  kExitDone = 0,
  kExitNotSo = 1,    // the thing asked about is not so
  kExitUsage = 2,    // wrong usage
  kExitRefused = 3,  // input that cannot be read or is refused
  kExitFailed = 4,   // I/O or resource failure while working
};

class Failure : public std::exception {
 public:
  /// `code` is a stable lower-case name for programs, `message` one sentence for people.
  Failure(ExitCode exit_code, std::string code, std::string message)
      : exit_code_(exit_code), code_(std::move(code)), message_(std::move(message)) {}
  /// An error of the library; its kind decides the exit code.
  explicit Failure(const Error& error);

  ExitCode exit_code() const { return exit_code_; }
  const std::string& code() const { return code_; }
  const char* what() const noexcept override { return message_.c_str(); }

 private:
  ExitCode exit_code_;
  std::string code_;
  std::string message_;
};

template <class... Args>
Failure usage_failure(fmt::format_string<Args...> format, Args&&... args) {
  return {kExitUsage, "usage", fmt::format(format, std::forward<Args>(args)...)};
}

/// The value of a call that does the work, or a Failure.
template <class T>
T value_of(Result<T> result) {
  if (!result) throw Failure(result.error());
  return *std::move(result);
}
inline void check(const Result<void>& result) {
  if (!result) throw Failure(result.error());
}

/// The value of a call that opens input: there, a file that cannot be read is refused input.
template <class T>
T opened(Result<T> result) {
  if (!result && result.error().code == ErrorCode::kIo) throw Failure(kExitRefused, "io", result.error().message);
  return value_of(std::move(result));
}

/// Sees to it that what was printed has arrived; throws the Failure where it cannot.
void flush_output();

}  // namespace rowtide::cli
