#include "base/grouped.h"

#include <fmt/format.h>

namespace rowtide {

std::string grouped(std::uint64_t number) {
  return number < 1000 ? fmt::format("{}", number) : fmt::format("{},{:03}", grouped(number / 1000), number % 1000);
}

}  // namespace rowtide
