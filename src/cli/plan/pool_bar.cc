#include "cli/plan/pool_bar.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <utility>
#include <vector>

#include "cli/text_table.h"

namespace rowtide::cli::plan {
namespace {

using sizing::Pool;
using sizing::PoolItem;

// Neighbours differ; colours, where there are any, tell apart what shares a glyph.
constexpr std::array kFilled = {"█", "▓", "▒", "░"};
constexpr std::array kFilledAscii = {"#", "=", "+", "o"};
constexpr std::array kItemColours = {"34", "36", "35", "33", "32", "94", "96", "95", "93"};

struct Segment {
  std::string glyph = " ";  // of an item too small for the bar
  const char* colour = nullptr;
  std::size_t cells = 0;
};

struct Bar {
  std::vector<Segment> segments;  // one for each item
  std::size_t free_cells = 0;
  std::size_t capacity_cells = 0;  // where the capacity ends
};

/// Cells of each item: whole ones, and what is left over for those that lost most of one.
std::vector<std::size_t> cells_of_items(const Pool& pool, double bytes_per_cell) {
  std::vector<std::size_t> cells;
  std::vector<std::pair<double, std::size_t>> lost;
  std::size_t given = 0;
  for (const PoolItem& item : pool.items) {
    const double exact = static_cast<double>(item.bytes) / bytes_per_cell;
    cells.push_back(static_cast<std::size_t>(exact));
    lost.emplace_back(static_cast<double>(cells.back()) - exact, lost.size());
    given += cells.back();
  }
  std::ranges::sort(lost);
  const auto all = static_cast<std::size_t>(std::llround(static_cast<double>(pool.used_bytes()) / bytes_per_cell));
  for (std::size_t i = 0; i < lost.size() && given < all; ++i, ++given) ++cells[lost[i].second];
  return cells;
}

Bar bar_of(const Pool& pool, std::size_t cells, bool utf8) {
  const std::uint64_t whole_bytes = std::max<std::uint64_t>(1, std::max(pool.capacity_bytes, pool.used_bytes()));
  const double bytes_per_cell = static_cast<double>(whole_bytes) / static_cast<double>(cells);
  Bar bar;
  std::size_t shown = 0, used_cells = 0;
  for (const std::size_t item_cells : cells_of_items(pool, bytes_per_cell)) {
    Segment segment;
    segment.cells = item_cells;
    used_cells += item_cells;
    if (item_cells > 0) {
      segment.glyph = utf8 ? kFilled.at(shown % kFilled.size()) : kFilledAscii.at(shown % kFilledAscii.size());
      segment.colour = kItemColours.at(shown % kItemColours.size());
      ++shown;
    }
    bar.segments.push_back(std::move(segment));
  }
  const auto capacity_cells = std::llround(static_cast<double>(pool.capacity_bytes) / bytes_per_cell);
  bar.capacity_cells =
      std::min(cells - 1, static_cast<std::size_t>(capacity_cells));  // even a little too much is marked
  bar.free_cells = cells - std::min(cells, used_cells);
  return bar;
}

std::string painted(const std::string& text, const char* colour, const PageStyle& style) {
  if (!style.colours || colour == nullptr || text.empty()) return text;
  return fmt::format("\033[{}m{}\033[0m", colour, text);
}

std::string repeated(std::string_view glyph, std::size_t times) {
  std::string text;
  for (std::size_t i = 0; i < times; ++i) text += glyph;
  return text;
}

std::string bar_text(const Pool& pool, const Bar& bar, const PageStyle& style) {
  const bool overfull = pool.missing_bytes() > 0;
  const std::string mark = coloured(style.utf8 ? "┃" : "|", Colour::kBad, style);
  std::string text = "  [";
  std::size_t at = 0;
  for (const Segment& segment : bar.segments) {
    const std::size_t end = at + segment.cells;
    const bool holds_mark = overfull && at <= bar.capacity_cells && bar.capacity_cells < end;
    const std::size_t before = holds_mark ? bar.capacity_cells - at : segment.cells;
    text += painted(repeated(segment.glyph, before), segment.colour, style);
    if (holds_mark) text += mark + painted(repeated(segment.glyph, segment.cells - before), segment.colour, style);
    at = end;
  }
  return text + repeated(style.utf8 ? "·" : ".", bar.free_cells) + "]\n";
}

std::string padded(std::string text, std::size_t columns) {
  const std::size_t shown = shown_columns(text);
  if (shown < columns) text.append(columns - shown, ' ');
  return text;
}

std::string share_text(const PoolItem& item, const Pool& pool) {
  const double share = static_cast<double>(item.bytes) / static_cast<double>(pool.capacity_bytes);
  return share > 0 && share < 0.0005 ? "<0.1 %" : percent_text(share);
}

/// The items' lines, in as many columns as the width has room for, each read from top to bottom.
std::string legend(const Pool& pool, const Bar& bar, const PageStyle& style) {
  std::size_t name_columns = 0;
  for (const PoolItem& item : pool.items) name_columns = std::max(name_columns, shown_columns(item.name));
  constexpr std::size_t kEntryFigures = 9 + 1 + 6, kGap = 2;  // "123.4 GiB", "0.4 %"
  const std::size_t entry_columns = 2 + name_columns + 1 + kEntryFigures;
  const std::size_t columns = std::max<std::size_t>(1, (style.width - 2 + kGap) / (entry_columns + kGap));
  const std::size_t lines = (pool.items.size() + columns - 1) / columns;
  std::string text;
  for (std::size_t line = 0; line < lines; ++line) {
    for (std::size_t i = line; i < pool.items.size(); i += lines) {
      const PoolItem& item = pool.items[i];
      text += "  ";
      text += painted(bar.segments[i].glyph, bar.segments[i].colour, style) + " " + padded(item.name, name_columns);
      text += fmt::format(" {:>9}", short_size(static_cast<double>(item.bytes)));
      if (pool.capacity_bytes != 0) text += fmt::format(" {:>6}", share_text(item, pool));
    }
    text += '\n';
  }
  return text;
}

std::string heading(const Pool& pool, std::string_view sold_as, const PageStyle& style) {
  std::string name = pool.name;
  if (!name.empty()) name.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(name.front())));
  std::string text = coloured(name, Colour::kHeading, style);
  if (!pool.each.empty()) text += " " + pool.each;
  if (pool.capacity_bytes == 0) {
    const std::string for_what = pool.items.size() == 1 ? " for the " + pool.items.front().name : "";
    return wrapped(fmt::format("{}: {} needed{}", text, size_in_both(pool.used_bytes()), for_what), 2, style.width);
  }
  text += fmt::format(": {}", short_size(static_cast<double>(pool.capacity_bytes)));
  if (!sold_as.empty()) text += fmt::format(" (sold as {})", sold_as);
  const std::string used = short_size(static_cast<double>(pool.used_bytes()));
  if (pool.missing_bytes() == 0) {
    text += fmt::format("; {} used, {} free", used, short_size(static_cast<double>(pool.free_bytes())));
  } else {
    text += fmt::format("; {} needed, ", used);
    text += coloured(size_in_both(pool.missing_bytes()) + " missing", Colour::kBad, style);
  }
  return wrapped(text, 2, style.width);
}

}  // namespace

std::string pool_text(const Pool& pool, std::string_view sold_as, const PageStyle& style) {
  constexpr std::size_t kFrameColumns = 5;  // indent, brackets, the mark
  if (pool.capacity_bytes == 0) {
    const Bar none{.segments = std::vector<Segment>(pool.items.size())};
    return heading(pool, "", style) + (pool.items.size() == 1 ? "" : legend(pool, none, style));
  }
  const Bar bar = bar_of(pool, style.width - kFrameColumns, style.utf8);
  return heading(pool, sold_as, style) + bar_text(pool, bar, style) + legend(pool, bar, style);
}

}  // namespace rowtide::cli::plan
