#include "store/memory_budget.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "rowtide/byte_size.h"
#include "rowtide/store.h"
#include "table/file_ranges.h"

namespace rowtide {
namespace {

constexpr std::uint64_t kCacheBytesMin = BundleCache::kSegmentsMin * SegmentArena::kSegmentBytes;

std::uint32_t segments_within(std::uint64_t bytes) {
  return static_cast<std::uint32_t>(
      std::min<std::uint64_t>(bytes / SegmentArena::kSegmentBytes, BundleCache::kSegmentsMax));
}

}  // namespace

MemoryBudget::Part& MemoryBudget::Part::operator=(Part&& other) noexcept {
  if (this == &other) return *this;
  release();
  budget_ = std::exchange(other.budget_, nullptr);
  use_ = other.use_;
  bytes_ = std::exchange(other.bytes_, 0);
  return *this;
}

void MemoryBudget::Part::release() {
  if (budget_ != nullptr && bytes_ != 0) (void)budget_->change(use_, bytes_, 0);  // giving back cannot fail
  bytes_ = 0;
}

Result<void> MemoryBudget::Part::resize(std::uint64_t bytes) {
  if (auto changed = budget_->change(use_, bytes_, bytes); !changed) return changed;
  bytes_ = bytes;
  return {};
}

Result<MemoryBudget::Part> MemoryBudget::take(Use use, std::uint64_t bytes) {
  Part part;
  part.budget_ = this;
  part.use_ = use;
  if (auto resized = part.resize(bytes); !resized) return resized.error();
  return part;
}

Result<void> MemoryBudget::change(Use use, std::uint64_t from, std::uint64_t to) {
  std::lock_guard lock(mutex_);
  const std::uint64_t others = taken() - from;
  const std::uint64_t kept = cache_ ? cache_->segments_min() * SegmentArena::kSegmentBytes : 0;
  if (to > from && (to > bytes_ || others + to + kept > bytes_)) {
    return make_error(ErrorCode::kResource,
                      "the memory budget of {} has no {} left: {} are taken, {} are the least for the cache; give a "
                      "larger budget",
                      byte_size_text(bytes_), byte_size_text(to - from), byte_size_text(taken()), byte_size_text(kept));
  }
  used_[static_cast<std::size_t>(use)] = used_[static_cast<std::size_t>(use)] - from + to;
  fit_cache();
  return {};
}

void MemoryBudget::fit_cache() {
  if (cache_) cache_->set_segments(segments_within(std::min(bytes_ - taken(), cache_limit_)));
}

std::uint64_t MemoryBudget::cache_limit() const {
  std::lock_guard lock(mutex_);
  return cache_limit_;
}

void MemoryBudget::set_cache_limit(std::uint64_t bytes) {
  std::lock_guard lock(mutex_);
  cache_limit_ = bytes;
  fit_cache();
}

std::uint64_t MemoryBudget::cache_bytes_min() const {
  std::lock_guard lock(mutex_);
  return cache_ ? cache_->segments_min() * SegmentArena::kSegmentBytes : kCacheBytesMin;
}

void MemoryBudget::add_table(const Table& table) {
  std::lock_guard lock(mutex_);
  for (const io::FileRange& range : file_ranges(table)) {
    const auto is_it = [&](const io::FileRange& known) {
      return known.path == range.path && known.offset == range.offset;
    };
    if (std::none_of(tables_.begin(), tables_.end(), is_it)) tables_.push_back(range);
  }
}

std::vector<io::FileRange> MemoryBudget::tables() const {
  std::lock_guard lock(mutex_);
  return tables_;
}

Result<BundleCache*> MemoryBudget::cache() {
  std::lock_guard lock(mutex_);
  if (!cache_) {
    if (bytes_ < taken() + kCacheBytesMin) {
      return make_error(ErrorCode::kResource, "the memory budget of {} leaves less than {} for a cache",
                        byte_size_text(bytes_), byte_size_text(kCacheBytesMin));
    }
    cache_ = std::make_unique<BundleCache>(segments_within(bytes_ - taken()));
    if (held_ == Held::kCommitted) cache_->commit();
    if (held_ == Held::kYielding) watch_ = std::make_unique<PressureWatch>(*this);
  }
  return cache_.get();
}

std::uint64_t MemoryBudget::used(Use use) const {
  std::lock_guard lock(mutex_);
  return used_[static_cast<std::size_t>(use)];
}

std::uint64_t MemoryBudget::left() const {
  std::lock_guard lock(mutex_);
  return bytes_ - taken();
}

std::uint64_t MemoryBudget::cache_bytes() const {
  std::lock_guard lock(mutex_);
  return cache_ ? cache_->memory_bytes() : 0;
}

Result<std::shared_ptr<MemoryBudget>> MemoryBudget::of_process(std::uint64_t asked, std::uint64_t otherwise,
                                                               Held held) {
  static std::mutex mutex;
  static std::weak_ptr<MemoryBudget> process_budget;
  std::lock_guard lock(mutex);
  if (auto budget = process_budget.lock()) {
    if (asked == 0 || asked == budget->bytes()) return budget;
    return make_error(ErrorCode::kUsage, "a memory budget of {}: the stores of this process share one of {}",
                      byte_size_text(asked), byte_size_text(budget->bytes()));
  }
  const std::uint64_t bytes = asked != 0 ? asked : otherwise;
  auto budget = std::make_shared<MemoryBudget>(bytes, held);
  process_budget = budget;
  return budget;
}

}  // namespace rowtide
