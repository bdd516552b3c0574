#include "cli/generate/process_memory.h"

#include "io/kernel_text.h"

namespace rowtide::cli {

std::uint64_t private_bytes() {
  constexpr std::uint64_t kUnit = 1024;
  const std::string status = io::kernel_text("/proc/self/status").value_or("");
  return kUnit * (io::named_number(status, "RssAnon:").value_or(0) + io::named_number(status, "RssShmem:").value_or(0));
}

}  // namespace rowtide::cli
