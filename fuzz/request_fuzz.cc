// A request to the page's server, untrusted: taken apart, and its query as the options of a plan. The input is the
// request.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "cli/ui/http_message.h"
#include "sizing/request.h"

namespace {

using namespace rowtide;

void require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto request = cli::ui::parse_http_request(text);
  if (!request) {
    require(request.error().code == ErrorCode::kMalformed && !request.error().message.empty());
    return 0;
  }
  require(request->path.starts_with('/') && request->header("host").has_value());
  (void)cli::ui::names_loopback(*request->header("host"));
  sizing::PlanOptions options;
  for (const auto& [name, value] : request->query) {
    require(value.find('\0') == std::string::npos);
    const auto set = sizing::set_plan_option(options, name, value);
    require(set || set.error().code == ErrorCode::kUsage);
  }
  return 0;
}
