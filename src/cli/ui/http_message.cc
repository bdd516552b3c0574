#include "cli/ui/http_message.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "base/error.h"

namespace rowtide::cli::ui {
namespace {

// Scripts and styles come from this server's own files, nothing is fetched from elsewhere, no other site may frame the
// page or read an answer.
constexpr std::string_view kHeadersOfAll =
    "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'\r\n"
    "X-Content-Type-Options: nosniff\r\n"
    "Referrer-Policy: no-referrer\r\n"
    "Cross-Origin-Resource-Policy: same-origin\r\n"
    "Cross-Origin-Opener-Policy: same-origin\r\n"
    "Cache-Control: no-store\r\n"
    "Connection: close\r\n";

Error malformed(std::string_view what) { return make_error(ErrorCode::kMalformed, "{}", what); }

std::string lower(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return result;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

/// What stands before `separator`, which is taken off `rest` too; all of it where there is none.
std::string_view take_until(std::string_view& rest, std::string_view separator) {
  const std::size_t at = rest.find(separator);
  const std::string_view taken = rest.substr(0, at);
  rest.remove_prefix(at == std::string_view::npos ? rest.size() : at + separator.size());
  return taken;
}

int hex_digit(char digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  const char letter = static_cast<char>(digit | 0x20);
  return letter >= 'a' && letter <= 'f' ? letter - 'a' + 10 : -1;
}

/// As forms encode: "+" is a space. Nothing for a broken escape, or for the zero byte, at which a path would end.
std::optional<std::string> decoded(std::string_view text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      result += text[i] == '+' ? ' ' : text[i];
      continue;
    }
    const int high = i + 2 < text.size() ? hex_digit(text[i + 1]) : -1;
    const int low = i + 2 < text.size() ? hex_digit(text[i + 2]) : -1;
    if (high < 0 || low < 0 || high + low == 0) return std::nullopt;
    result += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return result;
}

Result<void> parse_target(std::string_view target, HttpRequest& request) {
  if (!target.starts_with('/')) return malformed("the request's target is no path");
  request.path = take_until(target, "?");
  while (!target.empty()) {
    std::string_view pair = take_until(target, "&");
    if (pair.empty()) continue;
    const auto name = decoded(take_until(pair, "=")), value = decoded(pair);
    if (!name || !value) return malformed("the query has a broken % escape");
    request.query.emplace_back(*name, *value);
  }
  return {};
}

Result<void> parse_header(std::string_view line, HttpRequest& request) {
  const std::size_t colon = line.find(':');
  const std::string_view name = line.substr(0, colon);
  auto is_token = [](unsigned char c) { return c > ' ' && c < 0x7f; };
  if (colon == std::string_view::npos || name.empty() || !std::ranges::all_of(name, is_token)) {
    return malformed("a header is no NAME: VALUE");
  }
  request.headers.emplace_back(lower(name), trimmed(line.substr(colon + 1)));
  return {};
}

std::string_view status_text(int status) {
  constexpr std::array<std::pair<int, std::string_view>, 7> kTexts = {{{200, "OK"},
                                                                       {400, "Bad Request"},
                                                                       {403, "Forbidden"},
                                                                       {404, "Not Found"},
                                                                       {405, "Method Not Allowed"},
                                                                       {431, "Request Header Fields Too Large"},
                                                                       {500, "Internal Server Error"}}};
  for (const auto& [known, text] : kTexts) {
    if (known == status) return text;
  }
  return "Unknown";
}

}  // namespace

std::optional<std::string> HttpRequest::header(std::string_view name) const {
  for (const auto& [known, value] : headers) {
    if (known == name) return value;
  }
  return std::nullopt;
}

Result<HttpRequest> parse_http_request(std::string_view text) {
  auto is_control = [](unsigned char c) { return (c < ' ' && c != '\r' && c != '\n' && c != '\t') || c == 0x7f; };
  if (std::ranges::any_of(text, is_control)) return malformed("the request holds control characters");
  HttpRequest request;
  std::string_view line = take_until(text, "\r\n");
  request.method = take_until(line, " ");
  const std::string_view target = take_until(line, " ");
  auto is_upper = [](char c) { return c >= 'A' && c <= 'Z'; };
  if (request.method.empty() || !std::ranges::all_of(request.method, is_upper)) return malformed("no HTTP method");
  if (line != "HTTP/1.1" && line != "HTTP/1.0") return malformed("the request is no HTTP/1.1");
  if (auto parsed = parse_target(target, request); !parsed) return parsed.error();
  while (!text.empty()) {
    const std::string_view header = take_until(text, "\r\n");
    if (header.empty()) break;
    if (auto parsed = parse_header(header, request); !parsed) return parsed.error();
  }
  const auto hosts = std::ranges::count_if(request.headers, [](const auto& header) { return header.first == "host"; });
  if (hosts != 1) return malformed("the request must have one Host header");
  return request;
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

std::string http_text(const HttpResponse& response, bool with_body) {
  std::string text =
      fmt::format("HTTP/1.1 {} {}\r\nContent-Type: {}\r\nContent-Length: {}\r\n{}", response.status,
                  status_text(response.status), response.content_type, response.body.size(), kHeadersOfAll);
  if (response.status == 405) text += "Allow: GET, HEAD\r\n";
  text += "\r\n";
  return with_body ? text + response.body : text;
}

}  // namespace rowtide::cli::ui
