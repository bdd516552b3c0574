#include "checkpoint/name_table.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <utility>

namespace rowtide::checkpoint {
namespace {

constexpr std::size_t kFewest = 8;

}  // namespace

std::optional<std::uint32_t> NameTable::add(std::string_view name, std::uint32_t number) {
  if ((size_ + 1) * 8 > places_.size() * 7) grow();
  Place place = place_of(name);
  place.number = number;
  const std::size_t position = position_of(place);
  if (places_[position].low != 0) return places_[position].number;
  places_[position] = place;
  ++size_;
  return std::nullopt;
}

std::optional<std::uint32_t> NameTable::find(std::string_view name) const {
  if (places_.empty()) return std::nullopt;
  const Place& found = places_[position_of(place_of(name))];
  if (found.low == 0) return std::nullopt;
  return found.number;
}

NameTable::Place NameTable::place_of(std::string_view name) {
  const XXH128_hash_t hash = XXH3_128bits(name.data(), name.size());
  return {std::max<std::uint64_t>(hash.low64, 1), static_cast<std::uint32_t>(hash.high64), 0};
}

std::size_t NameTable::position_of(const Place& place) const {
  const std::size_t mask = places_.size() - 1;
  std::size_t at = place.low & mask;
  while (places_[at].low != 0 && (places_[at].low != place.low || places_[at].high != place.high)) {
    at = (at + 1) & mask;
  }
  return at;
}

void NameTable::grow() {
  const std::vector<Place> old = std::exchange(places_, std::vector<Place>(std::max(kFewest, 2 * places_.size())));
  for (const Place& place : old) {
    if (place.low != 0) places_[position_of(place)] = place;
  }
}

}  // namespace rowtide::checkpoint
