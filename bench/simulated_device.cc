#include "simulated_device.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/error.h"

namespace rowtide::bench {
namespace {

using Clock = SimulatedSource::Clock;

/// Reads of one queue are done in the order in which they were handed over, since every one takes the same time behind
/// those before it: a ring.
class SimulatedQueue final : public io::ReadQueue {
 public:
  SimulatedQueue(SimulatedSource& source, std::uint32_t depth) : source_(source), reads_(depth) {}

  Result<void> submit(std::span<const io::ReadRequest> requests) override {
    if (requests.size() > reads_.size() - (submitted_ - reaped_)) {
      return make_error(ErrorCode::kUsage, "more reads submitted than the queue is deep");
    }
    for (const io::ReadRequest& request : requests) at(submitted_++).request = request;
    return {};
  }

  Result<std::size_t> reap(std::size_t at_least, std::span<io::Completion> out) override {
    hand_over();
    const std::size_t wanted = std::min({at_least, submitted_ - reaped_, out.size()});
    std::size_t count = 0;
    while (true) {
      const auto now = Clock::now();
      while (count < out.size() && reaped_ < submitted_ && at(reaped_).done <= now) {
        out[count++] = deliver(at(reaped_++).request);
      }
      if (count >= wanted) return count;
    }
  }

 private:
  struct Read {
    io::ReadRequest request;
    Clock::time_point done;
  };
  Read& at(std::size_t index) { return reads_[index % reads_.size()]; }

  void hand_over() {
    if (handed_over_ == submitted_) return;
    const auto now = Clock::now();
    for (; handed_over_ < submitted_; ++handed_over_) {
      Read& read = at(handed_over_);
      read.done = source_.schedule(now, read.request.bytes);
    }
  }

  io::Completion deliver(const io::ReadRequest& request) const {
    const auto content = source_.content();
    const std::size_t bytes = std::min<std::size_t>(request.bytes, content.size() - request.offset);
    std::memcpy(request.into, content.data() + request.offset, bytes);
    return {request.tag, static_cast<std::int32_t>(bytes)};
  }

  SimulatedSource& source_;
  std::vector<Read> reads_;
  std::size_t submitted_ = 0, handed_over_ = 0, reaped_ = 0;  // each counts reads from the first
};

}  // namespace

SimulatedSource::SimulatedSource(std::span<const std::byte> content, SimulatedDrive drive, std::uint32_t depth)
    : content_(content),
      latency_(drive.latency),
      block_time_(std::chrono::nanoseconds(std::chrono::seconds(1)) / drive.blocks_per_s),
      method_(fmt::format("simulated drive, {} blocks/s, {} us", drive.blocks_per_s, drive.latency.count() / 1000)),
      limit_(depth) {}

Clock::time_point SimulatedSource::schedule(Clock::time_point now, std::uint32_t bytes) {
  const Clock::rep arrives = now.time_since_epoch().count();
  const Clock::rep takes = (block_time_ * (bytes / kBlockBytes)).count();
  Clock::rep free_from = free_from_.load(std::memory_order_relaxed);
  Clock::rep begins;
  do {
    begins = std::max(arrives, free_from);
  } while (!free_from_.compare_exchange_weak(free_from, begins + takes, std::memory_order_relaxed));
  return Clock::time_point(Clock::duration(begins)) + std::max(latency_, block_time_);
}

Result<std::unique_ptr<io::ReadQueue>> SimulatedSource::queue(std::uint32_t depth, std::span<std::byte>) {
  return std::unique_ptr<io::ReadQueue>(std::make_unique<SimulatedQueue>(*this, depth));
}

}  // namespace rowtide::bench
