// The query of a request to the page's server, untrusted, as the options of a plan; and the same bytes as a Host.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "cli/ui/http_message.h"
#include "sizing/request.h"

namespace {

using namespace rowtide;

void require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  (void)cli::ui::names_loopback(text);
  const auto query = cli::ui::parse_query(text);
  if (!query) {
    require(query.error().code == ErrorCode::kMalformed && !query.error().message.empty());
    return 0;
  }
  sizing::PlanOptions options;
  for (const auto& [name, value] : *query) {
    require(std::ranges::none_of(value, [](unsigned char c) { return c < ' '; }));
    const auto set = sizing::set_plan_option(options, name, value);
    require(set || set.error().code == ErrorCode::kUsage);
  }
  return 0;
}
