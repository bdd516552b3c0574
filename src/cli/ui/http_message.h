// One request as the page's server hands it on, and one response: GET and HEAD alone, nothing with a body.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rowtide/result.h"

namespace rowtide::cli::ui {

using Query = std::vector<std::pair<std::string, std::string>>;  // values decoded, in the order given

struct HttpRequest {
  std::string path;  // up to the question mark, as it was sent
  Query query;
  std::vector<std::pair<std::string, std::string>> headers;  // as they were sent

  /// The value of the first header of that name, in whatever case.
  std::optional<std::string> header(std::string_view name) const;
};

struct HttpResponse {
  int status = 200;
  std::string content_type;
  std::string body;
};

/// What stands after a request's question mark. kMalformed for what is no NAME=VALUE&..., and for control characters in
/// a value, escaped ones included: a path would end at the zero byte.
Result<Query> parse_query(const std::string& text);

/// Whether a Host header names this machine by loopback ("localhost:7698", "127.0.0.1", "[::1]:80"), with any port: a
/// tunnel may have another. A site whose name was made to resolve to 127.0.0.1 sends its own name.
bool names_loopback(std::string_view host);

}  // namespace rowtide::cli::ui
