#include "cli/text_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "rowtide/byte_size.h"

namespace rowtide::cli {

std::string grouped(std::uint64_t number) {
  return number < 1000 ? fmt::format("{}", number) : fmt::format("{},{:03}", grouped(number / 1000), number % 1000);
}

std::string size_text(std::uint64_t bytes) {
  constexpr std::uint64_t kMib = std::uint64_t{1} << 20;
  const std::string exact = grouped(bytes) + " bytes";
  return bytes < kMib ? exact : fmt::format("{} ({})", byte_size_text(bytes), exact);
}

std::string columns(const std::vector<std::vector<std::string>>& lines, std::size_t indent) {
  std::vector<std::size_t> widths;
  for (const auto& line : lines) {
    widths.resize(std::max(widths.size(), line.size()));
    for (std::size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
  }
  std::string text;
  for (const auto& line : lines) {
    text.append(indent, ' ');
    for (std::size_t i = 0; i < line.size(); ++i) {
      bool last = i + 1 == line.size();
      text += last ? line[i] : fmt::format("{:<{}}  ", line[i], widths[i]);
    }
    text += '\n';
  }
  return text;
}

}  // namespace rowtide::cli
