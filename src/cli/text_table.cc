#include "cli/text_table.h"

#include <fmt/format.h>

#include <algorithm>

namespace rowtide::cli {

std::string grouped(std::uint64_t number) {
  return number < 1000 ? fmt::format("{}", number) : fmt::format("{},{:03}", grouped(number / 1000), number % 1000);
}

std::string size_text(std::uint64_t bytes) {
  constexpr double kMib = 1024.0 * 1024.0, kGib = 1024.0 * kMib;
  auto size = static_cast<double>(bytes);
  if (size >= kGib) return fmt::format("{:.3f} GiB ({} bytes)", size / kGib, grouped(bytes));
  if (size >= kMib) return fmt::format("{:.1f} MiB ({} bytes)", size / kMib, grouped(bytes));
  return grouped(bytes) + " bytes";
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
