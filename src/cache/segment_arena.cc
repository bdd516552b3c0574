#include "cache/segment_arena.h"

#include <sys/mman.h>
#include <unistd.h>

namespace rowtide {
namespace {

/// A page full of page table entries maps one.
constexpr std::uint64_t huge_page_bytes(std::uint64_t page_bytes) { return page_bytes / sizeof(void*) * page_bytes; }

}  // namespace

std::uint64_t SegmentArena::system_page_bytes() { return static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)); }

SegmentArena::SegmentArena(std::uint32_t segments, std::uint64_t page_bytes) {
  mapping_bytes_ = (std::uint64_t{segments} + 1) * kSegmentBytes;  // one more, to begin at a multiple of a segment
  void* memory =
      ::mmap(nullptr, mapping_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return;
  mapping_ = memory;
  const auto address = reinterpret_cast<std::uintptr_t>(memory);
  const std::uintptr_t aligned = (address + kSegmentBytes - 1) / kSegmentBytes * kSegmentBytes;
  base_ = static_cast<std::byte*>(memory) + (aligned - address);
  segments_ = segments;
  // Kernels with pages of 16 or 64 KiB, as Arm's may have, have huge ones of 32 or 512 MiB: one would bring the memory
  // of many segments with the first of them, and stay when others are given back. A kernel without any refuses; no
  // matter.
  const bool within_a_segment = huge_page_bytes(page_bytes) <= kSegmentBytes;
  ::madvise(base_, segments * kSegmentBytes, within_a_segment ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
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
