#include "cli/plan/page_style.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

#include "cli/text_table.h"

namespace rowtide::cli::plan {
namespace {

constexpr std::size_t kLabelColumns = 11;  // "first token"

const char* code_of(Colour colour) {
  switch (colour) {
    case Colour::kGood: return "1;32";
    case Colour::kBad: return "1;31";
    case Colour::kHeading: return "1";
  }
  return "0";
}

}  // namespace

std::string coloured(std::string_view text, Colour colour, const PageStyle& style) {
  return style.colours ? fmt::format("\033[{}m{}\033[0m", code_of(colour), text) : std::string(text);
}

std::string short_size(double bytes) {
  constexpr std::array kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  while (bytes >= 1023.95 && unit + 1 < kUnits.size()) {
    bytes /= 1024;
    ++unit;
  }
  return unit == 0 ? fmt::format("{:.0f} B", bytes) : fmt::format("{:.1f} {}", bytes, kUnits.at(unit));
}

std::string size_in_both(std::uint64_t bytes) {
  const auto size = static_cast<double>(bytes);
  return size < 1e9 ? short_size(size) : fmt::format("{} ({:.1f} GB)", short_size(size), size / 1e9);
}

std::string percent_text(double share) {
  const double percent = 100 * share;
  if (percent > 0 && percent < 0.05) return "under 0.1 %";
  return percent < 9.95 && percent > 0 ? fmt::format("{:.1f} %", percent) : fmt::format("{:.0f} %", percent);
}

std::string rate_text(double rate) {
  if (!std::isfinite(rate) || rate >= 1e18) return "unlimited";
  if (rate >= 99.95) return grouped(static_cast<std::uint64_t>(std::llround(rate)));
  return rate >= 9.995 ? fmt::format("{:.1f}", rate) : fmt::format("{:.2f}", rate);
}

std::string labelled(std::string_view label, std::string_view text, const PageStyle& style) {
  return fmt::format("  {:<{}}  {}", label, kLabelColumns, wrapped(text, kLabelColumns + 4, style.width));
}

std::string listed(std::string_view text, const PageStyle& style) { return "  - " + wrapped(text, 4, style.width); }

}  // namespace rowtide::cli::plan
