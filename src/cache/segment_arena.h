// The cache's memory: address space for the largest cache there may be, held and given back in whole
// segments of 2 MiB.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

namespace rowtide {

class SegmentArena {
 public:
  static constexpr std::uint64_t kSegmentBytes = std::uint64_t{2} << 20;

  /// Reserves address space alone. segments() is 0 when the kernel refuses. `page_bytes` are the kernel's pages.
  explicit SegmentArena(std::uint32_t segments, std::uint64_t page_bytes = system_page_bytes());
  ~SegmentArena();
  SegmentArena(const SegmentArena&) = delete;
  SegmentArena& operator=(const SegmentArena&) = delete;

  /// Has the kernel provide the memory of all segments now, where it can.
  void commit();

  std::uint32_t segments() const { return segments_; }
  std::byte* base() const { return base_; }
  std::byte* segment(std::uint32_t index) const { return base_ + index * kSegmentBytes; }

  /// A segment that nobody holds; nothing when all are held. Its pages are taken as they are written,
  /// 2 MiB at once where the kernel has huge pages of that size. Threads: any.
  std::optional<std::uint32_t> take();
  /// Returns its memory to the kernel. Nobody may look into it any more. Threads: any.
  void give_back(std::uint32_t index);

 private:
  static std::uint64_t system_page_bytes();

  void* mapping_ = nullptr;
  std::uint64_t mapping_bytes_ = 0;
  std::byte* base_ = nullptr;
  std::uint32_t segments_ = 0;
  std::mutex mutex_;
  std::vector<std::uint32_t> free_;
};

}  // namespace rowtide
