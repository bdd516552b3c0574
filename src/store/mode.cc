#include <algorithm>
#include <array>

#include "rowtide/store.h"

namespace rowtide {
namespace {

constexpr std::array<std::string_view, 4> kNames = {"disk", "cache", "resident", "auto"};

}  // namespace

std::string_view mode_name(Mode mode) { return kNames[static_cast<std::size_t>(mode)]; }

std::optional<Mode> mode_named(std::string_view name) {
  const auto found = std::find(kNames.begin(), kNames.end(), name);
  if (found == kNames.end()) return std::nullopt;
  return static_cast<Mode>(found - kNames.begin());
}

}  // namespace rowtide
