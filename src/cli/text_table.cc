#include "cli/text_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "rowtide/byte_size.h"

namespace rowtide::cli {

std::string size_text(std::uint64_t bytes) {
  constexpr std::uint64_t kMib = std::uint64_t{1} << 20;
  const std::string exact = grouped(bytes) + " bytes";
  return bytes < kMib ? exact : fmt::format("{} ({})", byte_size_text(bytes), exact);
}

std::string columns(const std::vector<std::vector<std::string>>& lines, std::size_t indent) {
  std::vector<std::size_t> widths;
  for (const auto& line : lines) {
    widths.resize(std::max(widths.size(), line.size()));
    for (std::size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], shown_columns(line[i]));
  }
  std::string text;
  for (const auto& line : lines) {
    text.append(indent, ' ');
    for (std::size_t i = 0; i < line.size(); ++i) {
      bool last = i + 1 == line.size();
      text += line[i];
      if (!last) text.append(widths[i] - shown_columns(line[i]) + 2, ' ');
    }
    text += '\n';
  }
  return text;
}

std::size_t shown_columns(std::string_view text) {
  std::size_t columns = 0;
  bool in_colour = false;
  for (const char c : text) {
    if (c == '\033') in_colour = true;
    if (!in_colour && (c & 0xc0) != 0x80) ++columns;
    if (c == 'm') in_colour = false;
  }
  return columns;
}

std::string wrapped(std::string_view text, std::size_t indent, std::size_t width) {
  std::string lines;
  std::size_t column = indent;
  for (std::size_t at = 0; at < text.size();) {
    const std::string_view word = text.substr(at, text.find(' ', at) - at);
    if (column > indent && column + 1 + shown_columns(word) > width) {
      lines += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (column > indent) {
      lines += ' ';
      ++column;
    }
    lines += word;
    column += shown_columns(word);
    at += word.size() + 1;
  }
  return lines + "\n";
}

}  // namespace rowtide::cli
