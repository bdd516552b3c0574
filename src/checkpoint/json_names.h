// Remembers the names of the JSON objects that are open, to find one that occurs twice.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace rowtide::checkpoint {

/// Of each name its 128-bit hash alone: 16 bytes, and up to 32 more in an object of many members.
class JsonNames {
 public:
  void object_begins() { objects_.emplace_back(); }
  void object_ends();
  /// False if the innermost object has that name already.
  bool add(std::string_view name);
  /// In all objects that are open.
  std::size_t count() const { return count_; }

 private:
  struct Hash {
    std::uint64_t low = 0;
    std::uint64_t high = 0;
    bool operator==(const Hash&) const = default;
  };

  /// The few names of most objects stand in a row; those of a large one are a table with free places.
  class Object {
   public:
    bool add(Hash hash);
    std::size_t count() const { return count_; }

   private:
    static constexpr std::size_t kInRow = 8;

    bool is_table() const { return places_.size() > kInRow; }
    bool place(Hash hash);
    void grow();

    std::vector<Hash> places_;  // of a table: zero is free
    std::size_t count_ = 0;
  };

  std::vector<Object> objects_;
  std::size_t count_ = 0;
};

}  // namespace rowtide::checkpoint
