// Numbers as people read them.
#pragma once

#include <cstdint>
#include <string>

namespace rowtide {

/// 23444224 -> "23,444,224".
std::string grouped(std::uint64_t number);

}  // namespace rowtide
