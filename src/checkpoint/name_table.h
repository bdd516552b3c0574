// A number for each of many names, without the names.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace rowtide::checkpoint {

/// Knows a name by the 96 bits of its XXH3 hash: 18 to 37 bytes of memory each, whatever the name's length.
class NameTable {
 public:
  /// If the name is there, nothing changes and its number comes back.
  std::optional<std::uint32_t> add(std::string_view name, std::uint32_t number = 0);
  std::optional<std::uint32_t> find(std::string_view name) const;
  std::size_t size() const { return size_; }

 private:
  struct Place {
    std::uint64_t low = 0;  // zero: free
    std::uint32_t high = 0;
    std::uint32_t number = 0;
  };

  static Place place_of(std::string_view name);
  /// Where the name is, or the free place where it belongs. There are places.
  std::size_t position_of(const Place& place) const;
  void grow();

  std::vector<Place> places_;  // a power of two of them, or none
  std::size_t size_ = 0;
};

}  // namespace rowtide::checkpoint
