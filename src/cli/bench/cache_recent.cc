#include "cli/bench/cache_recent.h"

#include <algorithm>

namespace rowtide::cli {
namespace {

constexpr std::uint64_t kPageBytes = 4096;

std::uint64_t pages_of(const Extent& extent, std::uint64_t row_bytes) {
  return (extent.offset % kPageBytes + extent.rows * row_bytes + kPageBytes - 1) / kPageBytes;
}

std::uint64_t pages_of(const Table& table) {
  std::uint64_t pages = 0;
  for (const Component& component : table.components) {
    for (const Extent& extent : component.extents) pages += pages_of(extent, component.row_bytes);
  }
  return pages;
}

}  // namespace

RecentNumbers::RecentNumbers(std::size_t known, std::size_t capacity) : capacity_(capacity), links_(known + 1) {
  links_.back() = {static_cast<std::uint32_t>(known), static_cast<std::uint32_t>(known)};
}

void RecentNumbers::unlink(std::uint32_t number) {
  auto [next, previous] = links_[number];
  links_[previous].next = next;
  links_[next].previous = previous;
}

void RecentNumbers::touch(std::uint32_t number) {
  auto anchor = static_cast<std::uint32_t>(links_.size() - 1);
  if (holds(number)) {
    unlink(number);
  } else if (capacity_ == 0) {
    return;
  } else if (held_ == capacity_) {
    std::uint32_t oldest = links_[anchor].previous;
    unlink(oldest);
    links_[oldest] = {};
  } else {
    ++held_;
  }
  std::uint32_t latest = links_[anchor].next;
  links_[number] = {latest, anchor};
  links_[latest].previous = number;
  links_[anchor].next = number;
}

constexpr double kLinkBytes = 8;

LruCache::LruCache(const CacheCase& of)
    : rows_per_bundle_(of.trace.rows_per_bundle()), bundles_(of.trace.distinct(), of.bundles(kLinkBytes)) {}

std::uint64_t LruCache::serve(std::span<const Touch> batch) {
  std::uint64_t found = 0;
  for (const Touch& touch : batch) {
    if (bundles_.holds(touch.bundle)) found += rows_per_bundle_;
  }
  for (const Touch& touch : batch) bundles_.touch(touch.bundle);
  return found;
}

PageCache::PageCache(const CacheCase& of) : trace_(of.trace), pages_(pages_of(of.table), of.memory_bytes / kPageBytes) {
  std::uint64_t page = 0;
  for (const Component& component : of.table.components) {
    Part& part = parts_.emplace_back(Part{component.row_bytes, {}});
    for (const Extent& extent : component.extents) {
      part.stretches.push_back({extent.first_row, extent.offset % kPageBytes, page});
      page += pages_of(extent, component.row_bytes);
    }
  }
}

std::uint64_t PageCache::serve(std::span<const Touch> batch) {
  std::uint64_t found = 0;
  for (const Touch& touched : batch) {
    for (RowId row : trace_.rows(touched.bundle)) found += touch(row) ? 1 : 0;
  }
  return found;
}

PageCache::Pages PageCache::pages_of_row(const Part& part, RowId row) {
  auto after = std::upper_bound(part.stretches.begin(), part.stretches.end(), row,
                                [](RowId id, const Stretch& stretch) { return id < stretch.first_row; });
  const Stretch& stretch = *std::prev(after);
  std::uint64_t byte = stretch.first_byte + (row - stretch.first_row) * part.row_bytes;
  return {static_cast<std::uint32_t>(stretch.first_page + byte / kPageBytes),
          static_cast<std::uint32_t>(stretch.first_page + (byte + part.row_bytes - 1) / kPageBytes)};
}

/// A row is there when all its pages are.
bool PageCache::touch(RowId row) {
  bool there = true;
  for (const Part& part : parts_) {
    auto [first, last] = pages_of_row(part, row);
    for (std::uint32_t page = first; page <= last; ++page) {
      there = pages_.holds(page) && there;
      pages_.touch(page);
    }
  }
  return there;
}

}  // namespace rowtide::cli
