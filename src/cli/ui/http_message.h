// One request of HTTP/1.1 as the page's server takes it, and one response: GET and HEAD alone, nothing with a body.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rowtide/result.h"

namespace rowtide::cli::ui {

inline constexpr std::size_t kRequestBytesMax = std::size_t{16} << 10;  // its line and headers

struct HttpRequest {
  std::string method;
  std::string path;                                          // up to the question mark, as it was sent
  std::vector<std::pair<std::string, std::string>> query;    // decoded, in the order given
  std::vector<std::pair<std::string, std::string>> headers;  // names in lower case

  /// The value of the first header of that lower-case name.
  std::optional<std::string> header(std::string_view name) const;
};

/// Parses a request's line and headers, the empty line after them included. kMalformed for what is no HTTP/1.x, has no
/// Host or two, or does not decode.
Result<HttpRequest> parse_http_request(std::string_view text);

/// Whether a Host header names this machine by loopback ("localhost:7698", "127.0.0.1", "[::1]:80"), with any port: a
/// tunnel may have another. A site whose name was made to resolve to 127.0.0.1 sends its own name.
bool names_loopback(std::string_view host);

struct HttpResponse {
  int status = 200;
  std::string content_type;
  std::string body;
};

/// As sent, the headers that keep a browser to this server included. `with_body`: not for HEAD.
std::string http_text(const HttpResponse& response, bool with_body);

}  // namespace rowtide::cli::ui
