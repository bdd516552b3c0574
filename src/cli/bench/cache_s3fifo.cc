#include "cli/bench/cache_s3fifo.h"

#include <algorithm>
#include <charconv>

#include "cli/failure.h"
#include "cli/input.h"

namespace rowtide::cli {
namespace {

constexpr double kGhostBytes = 5;

/// A number of 0..most, or a usage Failure.
double setting(std::string_view name, std::string_view text, double most) {
  double value = -1;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size() && value >= 0 && value <= most) return value;
  throw usage_failure("--policy: s3fifo's {} is '{}'; give a number of 0 to {}", name, text, most);
}

}  // namespace

S3FifoSettings parse_s3fifo(std::string_view text) {
  S3FifoSettings settings;
  while (!text.empty()) {
    std::string_view one = text.substr(0, text.find(':'));
    text.remove_prefix(std::min(text.size(), one.size() + 1));
    std::size_t equals = std::min(one.find('='), one.size());
    std::string_view name = one.substr(0, equals), value = one.substr(std::min(equals + 1, one.size()));
    if (name == "small") {
      settings.small = setting(name, value, 1);
    } else if (name == "ghost") {
      settings.ghost = setting(name, value, 100);
    } else if (name == "promote") {
      settings.promote = static_cast<std::uint32_t>(setting(name, value, 255));
    } else if (name == "touches") {
      settings.touches = static_cast<std::uint32_t>(setting(name, value, 255));
    } else if (name == "segment") {
      settings.segment_bytes = parse_size("--policy: s3fifo's segment", value);
    } else {
      throw usage_failure("--policy: s3fifo has no setting '{}'; it has small, ghost, promote, touches and segment",
                          name);
    }
  }
  return settings;
}

S3Fifo::S3Fifo(const CacheCase& of, const S3FifoSettings& settings)
    : settings_(settings), rows_per_bundle_(of.trace.rows_per_bundle()), small_(0), main_(0) {
  double ghosts_a_bundle = settings.ghost * (1 - settings.small);
  std::size_t capacity = of.bundles(kGhostBytes * ghosts_a_bundle);
  segment_ = std::max<std::size_t>(settings.segment_bytes / of.record_bytes(), 1);
  std::size_t kept_free = settings.segment_bytes == 0 ? 0 : 1;  // survivors of the segment that is evicted go there
  std::size_t all = capacity / segment_;
  segment_limit_ = all > kept_free ? all - kept_free : 0;
  small_target_ = static_cast<std::size_t>(settings.small * static_cast<double>(capacity));
  ghost_room_ = static_cast<std::uint64_t>(ghosts_a_bundle * static_cast<double>(capacity));
  small_ = main_ = Queue((all + 1) * segment_);
  place_.resize(of.trace.distinct(), Place::kNowhere);
  touches_.resize(of.trace.distinct());
  left_at_.resize(of.trace.distinct());
}

std::uint64_t S3Fifo::serve(std::span<const Touch> batch) {
  std::uint64_t found = 0;
  missing_.clear();
  for (const Touch& touch : batch) {
    if (place_[touch.bundle] == Place::kNowhere) {
      missing_.push_back(touch);
    } else {
      found += rows_per_bundle_;
      touches_[touch.bundle] = std::min(touches_[touch.bundle] + touch.count, settings_.touches);
    }
  }
  if (segment_limit_ == 0) return found;
  for (const Touch& touch : missing_) admit(touch);
  return found;
}

void S3Fifo::admit(const Touch& touch) {
  bool to_main = remembered(touch.bundle);
  left_at_[touch.bundle] = 0;
  // While it is full, the queue's open segment takes no more: a new one is needed, and must not be the last free one.
  auto is_full = [&] { return (to_main ? main_ : small_).size() % segment_ == 0; };
  while (is_full() && segments(small_) + segments(main_) >= segment_limit_) evict_segment();
  (to_main ? main_ : small_).push(touch.bundle);
  place_[touch.bundle] = to_main ? Place::kMain : Place::kSmall;
  touches_[touch.bundle] = std::min(touch.count - 1, settings_.touches);
}

/// The oldest segment of the queue that has more than its share.
void S3Fifo::evict_segment() {
  bool from_small = main_.size() == 0 || (small_.size() >= segment_ && small_.size() >= small_target_);
  Queue& queue = from_small ? small_ : main_;
  for (std::size_t left = std::min(segment_, queue.size()); left > 0; --left) {
    BundleNumber bundle = queue.pop();
    from_small ? leave_small(bundle) : leave_main(bundle);
  }
}

void S3Fifo::leave_small(BundleNumber bundle) {
  if (touches_[bundle] >= settings_.promote) {
    main_.push(bundle);
    place_[bundle] = Place::kMain;
    touches_[bundle] = 0;
  } else {
    place_[bundle] = Place::kNowhere;
    left_at_[bundle] = ++forgotten_;
  }
}

void S3Fifo::leave_main(BundleNumber bundle) {
  if (touches_[bundle] > 0) {
    --touches_[bundle];
    main_.push(bundle);
  } else {
    place_[bundle] = Place::kNowhere;
  }
}

bool S3Fifo::remembered(BundleNumber bundle) const {
  return left_at_[bundle] != 0 && forgotten_ - left_at_[bundle] < ghost_room_;
}

}  // namespace rowtide::cli
