#include "base/error.h"

#include <system_error>

namespace rowtide {

std::string_view error_code_name(ErrorCode code) {
  switch (code) {
    case ErrorCode::kUsage: return "usage";
    case ErrorCode::kNotFound: return "not_found";
    case ErrorCode::kMalformed: return "malformed";
    case ErrorCode::kUnsupported: return "unsupported";
    case ErrorCode::kMismatch: return "mismatch";
    case ErrorCode::kOutOfRange: return "out_of_range";
    case ErrorCode::kIo: return "io";
    case ErrorCode::kResource: return "resource";
  }
  return "unknown";
}

std::string errno_text(int errno_value) {
  return fmt::format("{} (errno {})", std::generic_category().message(errno_value), errno_value);
}

}  // namespace rowtide
