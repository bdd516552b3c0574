#include "cli/failure.h"

#include <cerrno>
#include <cstdio>

#include "base/error.h"

namespace rowtide::cli {
namespace {

ExitCode exit_code_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::kUsage: return kExitUsage;
    case ErrorCode::kNotFound:
    case ErrorCode::kMalformed:
    case ErrorCode::kUnsupported:
    case ErrorCode::kMismatch:
    case ErrorCode::kOutOfRange: return kExitRefused;
    case ErrorCode::kIo:
    case ErrorCode::kResource: return kExitFailed;
  }
  return kExitFailed;
}

}  // namespace

Failure::Failure(const Error& error)
    : Failure(exit_code_of(error.code), std::string(error_code_name(error.code)), error.message) {}

void flush_output() {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return;
  throw Failure(kExitFailed, "io", fmt::format("standard output cannot be written: {}", errno_text(errno)));
}

}  // namespace rowtide::cli
