#include "cli/bench/cache_foresight.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace rowtide::cli {
namespace {

constexpr std::uint32_t kNever = std::numeric_limits<std::uint32_t>::max();

}  // namespace

StaticSet::StaticSet(const CacheCase& of)
    : rows_per_bundle_(of.trace.rows_per_bundle()), middle_(of.trace.batches() / 2), held_(of.trace.distinct()) {
  std::vector<std::uint32_t> count(of.trace.distinct());
  for (const Touch& touch : of.trace.touches().first(of.trace.batch_start(middle_))) count[touch.bundle] += touch.count;
  std::vector<BundleNumber> order;
  for (BundleNumber bundle = 0; bundle < count.size(); ++bundle) {
    if (count[bundle] > 0) order.push_back(bundle);
  }
  std::size_t capacity = std::min<std::size_t>(of.bundles(0), order.size());
  auto more = [&](BundleNumber a, BundleNumber b) { return count[a] != count[b] ? count[a] > count[b] : a < b; };
  std::nth_element(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(capacity), order.end(), more);
  for (std::size_t i = 0; i < capacity; ++i) held_[order[i]] = true;
}

std::uint64_t StaticSet::serve(std::span<const Touch> batch) {
  auto held = std::count_if(batch.begin(), batch.end(), [&](const Touch& touch) { return held_[touch.bundle]; });
  return static_cast<std::uint64_t>(held) * rows_per_bundle_;
}

OptimalCache::OptimalCache(const CacheCase& of)
    : rows_per_bundle_(of.trace.rows_per_bundle()),
      capacity_(of.bundles(0)),
      next_(of.trace.touches().size(), kNever),
      kept_(of.trace.touches().size()) {
  std::vector<Place> later(of.trace.distinct(), kNever);
  for (std::size_t place = next_.size(); place-- > 0;) {
    Place& next = later[of.trace.touches()[place].bundle];
    next_[place] = next;
    next = static_cast<Place>(place);
  }
}

std::uint64_t OptimalCache::serve(std::span<const Touch> batch) {
  std::uint64_t found = 0;
  for (std::size_t place = served_; place < served_ + batch.size(); ++place) {
    if (kept_[place]) ++found;
  }
  held_ -= found;  // what was looked up competes anew, by its next lookup
  for (std::size_t place = served_; place < served_ + batch.size(); ++place) {
    if (next_[place] == kNever) continue;
    kept_[next_[place]] = true;
    far_.push(next_[place]);
    ++held_;
  }
  // Places that were used lie behind all others, so they are never on top while something is held.
  for (; held_ > capacity_; --held_) {
    kept_[far_.top()] = false;
    far_.pop();
  }
  served_ += batch.size();
  return found * rows_per_bundle_;
}

}  // namespace rowtide::cli
