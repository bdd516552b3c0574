// S3-FIFO as a model: three queues, as in "FIFO queues are all you need for cache eviction" (SOSP 2023).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/bench/cache_policy.h"

namespace rowtide::cli {

struct S3FifoSettings {
  double small = 0.1;               // the small queue's share of the bundles
  double ghost = 1;                 // bundles remembered after leaving it, for each one the main queue holds
  std::uint32_t promote = 1;        // lookups after the first that move a bundle from the small queue to the main one
  std::uint32_t touches = 3;        // lookups that are counted at most
  std::uint64_t segment_bytes = 0;  // bundles leave in segments of this size, and one segment stays free; 0: one by one
};

/// From "small=0.1:ghost=1", any of the settings; "" is all defaults. Throws a usage Failure.
S3FifoSettings parse_s3fifo(std::string_view text);

class S3Fifo : public CachePolicy {
 public:
  S3Fifo(const CacheCase& of, const S3FifoSettings& settings);
  std::uint64_t serve(std::span<const Touch> batch) override;

 private:
  enum class Place : std::uint8_t { kNowhere, kSmall, kMain };

  /// A queue with room for a fixed number.
  class Queue {
   public:
    explicit Queue(std::size_t room) : ring_(room) {}
    std::size_t size() const { return size_; }
    void push(BundleNumber bundle) {
      std::size_t end = first_ + size_++;
      ring_[end < ring_.size() ? end : end - ring_.size()] = bundle;
    }
    BundleNumber pop() {
      BundleNumber bundle = ring_[first_];
      if (++first_ == ring_.size()) first_ = 0;
      --size_;
      return bundle;
    }

   private:
    std::vector<BundleNumber> ring_;
    std::size_t first_ = 0, size_ = 0;
  };

  std::size_t segments(const Queue& queue) const { return (queue.size() + segment_ - 1) / segment_; }
  void admit(const Touch& touch);
  void evict_segment();
  void leave_small(BundleNumber bundle);
  void leave_main(BundleNumber bundle);
  bool remembered(BundleNumber bundle) const;

  S3FifoSettings settings_;
  std::uint32_t rows_per_bundle_;
  std::size_t segment_;        // bundles in one
  std::size_t segment_limit_;  // in use by both queues between evictions
  std::size_t small_target_;   // bundles
  std::uint64_t ghost_room_;
  Queue small_, main_;
  std::vector<Place> place_;
  std::vector<std::uint32_t> touches_;
  std::uint64_t forgotten_ = 0;         // bundles that have left the small queue for good
  std::vector<std::uint64_t> left_at_;  // what `forgotten_` was then, from 1 on; 0: is not remembered
  std::vector<Touch> missing_;
};

}  // namespace rowtide::cli
