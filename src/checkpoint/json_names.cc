#include "checkpoint/json_names.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <utility>

namespace rowtide::checkpoint {

void JsonNames::object_ends() {
  count_ -= objects_.back().count();
  objects_.pop_back();
}

bool JsonNames::add(std::string_view name) {
  const XXH128_hash_t hash = XXH3_128bits(name.data(), name.size());
  // Zero marks a free place of a table.
  if (!objects_.back().add({std::max<std::uint64_t>(hash.low64, 1), hash.high64})) return false;
  ++count_;
  return true;
}

bool JsonNames::Object::add(Hash hash) {
  if (is_table()) {
    if ((count_ + 1) * 4 > places_.size() * 3) grow();
    if (!place(hash)) return false;
  } else {
    if (std::find(places_.begin(), places_.end(), hash) != places_.end()) return false;
    places_.push_back(hash);
    if (is_table()) grow();
  }
  ++count_;
  return true;
}

/// Puts a hash into the table unless it is there.
bool JsonNames::Object::place(Hash hash) {
  const std::size_t mask = places_.size() - 1;
  for (std::size_t at = hash.low & mask;; at = (at + 1) & mask) {
    if (places_[at] == hash) return false;
    if (places_[at] == Hash{}) {
      places_[at] = hash;
      return true;
    }
  }
}

/// To twice the size, or from a row to a table.
void JsonNames::Object::grow() {
  std::size_t size = 4 * kInRow;
  while (size < 2 * places_.size()) size *= 2;
  const std::vector<Hash> old = std::exchange(places_, std::vector<Hash>(size));
  for (const Hash& hash : old) {
    if (hash != Hash{}) place(hash);
  }
}

}  // namespace rowtide::checkpoint
