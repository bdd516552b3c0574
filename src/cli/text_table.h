// Numbers and columns for people.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/grouped.h"

namespace rowtide::cli {

/// "26.822 GiB (28,800,138,240 bytes)", "22.4 MiB (23,444,224 bytes)", "61,440 bytes".
std::string size_text(std::uint64_t bytes);

/// Lines of cells as text: columns as wide as they need, two spaces between, `indent` spaces before each line.
std::string columns(const std::vector<std::vector<std::string>>& lines, std::size_t indent);

/// Columns that UTF-8 text takes on a terminal: one a character, none for colours.
std::size_t shown_columns(std::string_view text);

/// `text` in lines of at most `width` columns, all but the first indented as the first is by what stands before it; a
/// word longer than a line stands in one of its own. Ends with a newline.
std::string wrapped(std::string_view text, std::size_t indent, std::size_t width);

}  // namespace rowtide::cli
