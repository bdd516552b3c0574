#include "cli/ui/http_message.h"

#include <event2/http.h>
#include <event2/keyvalq_struct.h>

#include <algorithm>
#include <cctype>

#include "base/error.h"

namespace rowtide::cli::ui {
namespace {

Error malformed(std::string_view what) { return make_error(ErrorCode::kMalformed, "{}", what); }

bool is_control(unsigned char c) { return c < ' ' || c == 0x7f; }

std::string lower(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return result;
}

}  // namespace

std::optional<std::string> HttpRequest::header(std::string_view name) const {
  for (const auto& [known, value] : headers) {
    if (lower(known) == lower(name)) return value;
  }
  return std::nullopt;
}

Result<Query> parse_query(const std::string& text) {
  // libevent's values end at a zero byte, so that it must be found before they are decoded.
  if (std::ranges::any_of(text, is_control) || text.find("%00") != std::string::npos) {
    return malformed("the query holds control characters");
  }
  evkeyvalq pairs{};
  if (::evhttp_parse_query_str(text.c_str(), &pairs) != 0) return malformed("the query is no NAME=VALUE&NAME=VALUE");
  Query query;
  for (const evkeyval* pair = pairs.tqh_first; pair != nullptr; pair = pair->next.tqe_next) {
    query.emplace_back(pair->key, pair->value);
  }
  ::evhttp_clear_headers(&pairs);
  for (const auto& [name, value] : query) {
    if (std::ranges::any_of(value, is_control)) return malformed("the query holds control characters");
  }
  return query;
}

bool names_loopback(std::string_view host) {
  const std::size_t bracket = host.rfind(']');
  const std::size_t colon = host.rfind(':');
  std::string_view name = host;
  if (colon != std::string_view::npos && (bracket == std::string_view::npos || colon > bracket)) {
    const std::string_view port = host.substr(colon + 1);
    if (port.empty() || !std::ranges::all_of(port, [](char c) { return c >= '0' && c <= '9'; })) return false;
    name = host.substr(0, colon);
  }
  const std::string known = lower(name);
  return known == "localhost" || known == "127.0.0.1" || known == "[::1]";
}

}  // namespace rowtide::cli::ui
