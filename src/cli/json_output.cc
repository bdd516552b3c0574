#include "cli/json_output.h"

#include <cstdio>
#include <string>

namespace rowtide::cli {

void print_json(const Json& document) {
  constexpr int kCompact = -1;
  std::string text = document.dump(kCompact, ' ', false, Json::error_handler_t::replace);
  std::puts(text.c_str());
}

}  // namespace rowtide::cli
