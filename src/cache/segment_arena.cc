#include "cache/segment_arena.h"

#include <sys/mman.h>

namespace rowtide {

SegmentArena::SegmentArena(std::uint32_t segments) {
  mapping_bytes_ = (std::uint64_t{segments} + 1) * kSegmentBytes;  // one more, to begin at a multiple of a segment
  void* memory =
      ::mmap(nullptr, mapping_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return;
  mapping_ = memory;
  const auto address = reinterpret_cast<std::uintptr_t>(memory);
  const std::uintptr_t aligned = (address + kSegmentBytes - 1) / kSegmentBytes * kSegmentBytes;
  base_ = static_cast<std::byte*>(memory) + (aligned - address);
  segments_ = segments;
  ::madvise(base_, segments * kSegmentBytes, MADV_HUGEPAGE);  // a kernel without them refuses; no matter
  free_.reserve(segments);
  for (std::uint32_t i = segments; i > 0; --i) free_.push_back(i - 1);
}

SegmentArena::~SegmentArena() {
  if (mapping_ != nullptr) ::munmap(mapping_, mapping_bytes_);
}

void SegmentArena::commit() {
#ifdef MADV_POPULATE_WRITE
  ::madvise(base_, segments_ * kSegmentBytes, MADV_POPULATE_WRITE);
#endif
}

std::optional<std::uint32_t> SegmentArena::take() {
  std::lock_guard lock(mutex_);
  if (free_.empty()) return std::nullopt;
  const std::uint32_t index = free_.back();
  free_.pop_back();
  return index;
}

void SegmentArena::give_back(std::uint32_t index) {
  ::madvise(segment(index), kSegmentBytes, MADV_DONTNEED);
  std::lock_guard lock(mutex_);
  free_.push_back(index);
}

}  // namespace rowtide
