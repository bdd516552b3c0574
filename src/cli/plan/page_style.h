// How pages of a plan look: what the terminal can show, and the few forms of figures they share.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace rowtide::cli::plan {

struct PageStyle {
  bool colours = false;
  bool utf8 = false;
  std::size_t width = 100;  // columns
};

enum class Colour : std::uint8_t { kGood, kBad, kHeading };
std::string coloured(std::string_view text, Colour colour, const PageStyle& style);

/// "76.9 GiB", "512.0 MiB", "180.0 KiB", "90 B": for tables, where three digits are enough.
std::string short_size(double bytes);
/// "76.9 GiB (82.6 GB)".
std::string size_in_both(std::uint64_t bytes);
/// "0.4 %", "49 %".
std::string percent_text(double share);
/// "0.42", "28.5", "1,234": three digits, more where the number has more before the point.
std::string rate_text(double rate);

/// A line of a section: `label` in a column of its own, then `text` in as many lines as it takes.
std::string labelled(std::string_view label, std::string_view text, const PageStyle& style);
/// The same for a list: a dash, then the text.
std::string listed(std::string_view text, const PageStyle& style);

}  // namespace rowtide::cli::plan
