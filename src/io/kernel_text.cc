#include "io/kernel_text.h"

#include <charconv>
#include <fstream>
#include <iterator>

namespace rowtide::io {

std::optional<std::string> kernel_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  std::string text(std::istreambuf_iterator<char>(file), {});
  if (file.bad() || text.empty()) return std::nullopt;
  return text;
}

std::optional<std::uint64_t> leading_number(std::string_view text) {
  const std::size_t start = text.find_first_not_of(" \t");
  if (start == std::string_view::npos) return std::nullopt;
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data() + start, text.data() + text.size(), number);
  return error == std::errc() ? std::optional(number) : std::nullopt;
}

std::optional<std::uint64_t> named_number(std::string_view text, std::string_view name) {
  for (std::size_t at = 0; at < text.size();) {
    const std::string_view line = text.substr(at, text.find('\n', at) - at);
    const bool named =
        line.size() > name.size() && line.starts_with(name) && (line[name.size()] == ' ' || line[name.size()] == '\t');
    if (named) return leading_number(line.substr(name.size()));
    at += line.size() + 1;
  }
  return std::nullopt;
}

}  // namespace rowtide::io
