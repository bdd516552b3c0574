#include "cli/failure.h"

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

}  // namespace rowtide::cli
