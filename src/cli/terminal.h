// What standard output can show.
#pragma once

#include <cstddef>

namespace rowtide::cli {

/// Columns of the terminal within least..most; `most` where standard output is none, or does not tell.
std::size_t page_width(std::size_t least, std::size_t most);

/// A terminal, and NO_COLOR is not set.
bool wants_colours();

/// The environment's locale is one of UTF-8.
bool shows_utf8();

}  // namespace rowtide::cli
