// A reader's buffer: a ring of bytes into which runs are read and from which they are released in the
// order they were placed, though reads complete in any order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

namespace rowtide {

class RunBuffer {
 public:
  /// Address space of `bytes`, a multiple of the largest block; pages are taken when first read into.
  /// Empty (data() == nullptr) when the kernel refuses.
  explicit RunBuffer(std::size_t bytes);
  ~RunBuffer();
  RunBuffer(const RunBuffer&) = delete;
  RunBuffer& operator=(const RunBuffer&) = delete;

  std::byte* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }

  /// Room for `bytes` next to each other, or nothing while the ring is too full.
  std::optional<std::size_t> place(std::size_t bytes);
  /// The oldest placed run is gone; `next_oldest` is where the one after it begins, nothing if none is left.
  void release_oldest(std::optional<std::size_t> next_oldest);

 private:
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
  std::size_t write_ = 0;                // where the next run goes, unless it must wrap
  std::optional<std::size_t> oldest_{};  // start of the oldest run still placed
};

}  // namespace rowtide
