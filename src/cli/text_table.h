// Numbers and columns for people.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace rowtide::cli {

/// 23444224 -> "23,444,224".
std::string grouped(std::uint64_t number);

/// "26.822 GiB (28,800,138,240 bytes)", "22.4 MiB (23,444,224 bytes)", "61,440 bytes".
std::string size_text(std::uint64_t bytes);

/// Lines of cells as text: columns as wide as they need, two spaces between, `indent` spaces before each line.
std::string columns(const std::vector<std::vector<std::string>>& lines, std::size_t indent);

}  // namespace rowtide::cli
