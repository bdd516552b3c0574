// A big array of zeros whose pages the kernel provides as they are written, huge ones where it can.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <new>
#include <type_traits>

namespace rowtide {

/// `Item` must be one for which all bits zero is a valid value. Throws std::bad_alloc.
template <class Item>
class ZeroedArray {
  static_assert(std::is_trivially_destructible_v<Item>);

 public:
  explicit ZeroedArray(std::uint64_t size) : size_(size) {
    void* memory = ::mmap(nullptr, bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    ::madvise(memory, bytes(), MADV_HUGEPAGE);
    items_ = static_cast<Item*>(memory);
  }
  ~ZeroedArray() { ::munmap(items_, bytes()); }
  ZeroedArray(const ZeroedArray&) = delete;
  ZeroedArray& operator=(const ZeroedArray&) = delete;

  /// Has the kernel provide all of it now, where it can; beside others' use of it.
  void commit() const {
#ifdef MADV_POPULATE_WRITE
    ::madvise(items_, bytes(), MADV_POPULATE_WRITE);
#endif
  }

  std::uint64_t size() const { return size_; }
  std::uint64_t bytes() const { return size_ * sizeof(Item); }
  Item& operator[](std::uint64_t at) { return items_[at]; }
  const Item& operator[](std::uint64_t at) const { return items_[at]; }

 private:
  Item* items_ = nullptr;
  std::uint64_t size_;
};

}  // namespace rowtide
