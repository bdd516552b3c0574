#include "io/measure_drive.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

#include "base/error.h"

namespace rowtide::io {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr auto kSerialTime = milliseconds(300);
constexpr auto kDepthTime = milliseconds(150);  // twice for each depth
constexpr auto kGlanceTime = milliseconds(350);
constexpr int kGlances = 4;  // so long each
constexpr auto kSequentialTime = milliseconds(500);
constexpr double kDepthSecondsMax = 0.5;
constexpr std::uint32_t kSequentialBytes = 1 << 20;
constexpr std::uint32_t kSequentialDepth = 8;
constexpr std::size_t kAlignment = 65536;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

/// Offsets of random blocks. All blocks come once before one comes again.
class RandomBlocks {
 public:
  RandomBlocks(std::uint64_t blocks, std::uint32_t block_bytes, std::uint64_t seed)
      : block_bytes_(block_bytes), taken_(blocks), random_(seed) {}

  std::uint64_t next() {
    // Nearly all taken, finding another takes long: then all may come again.
    if (count_ > taken_.size() - taken_.size() / 8) {
      taken_.assign(taken_.size(), false);
      count_ = 0;
    }
    std::uint64_t block = random_() % taken_.size();
    while (taken_[block]) block = random_() % taken_.size();
    taken_[block] = true;
    ++count_;
    return block * block_bytes_;
  }

 private:
  std::uint32_t block_bytes_;
  std::vector<bool> taken_;
  std::uint64_t count_ = 0;
  std::mt19937_64 random_;
};

class Measurement {
 public:
  Measurement(BlockSource& source, std::uint64_t seed)
      : source_(source),
        block_bytes_(source.block_bytes()),
        blocks_(source.file_bytes(0) / block_bytes_, block_bytes_, seed) {}

  Result<void> init() {
    const std::size_t bytes = std::max<std::size_t>(std::size_t{kSequentialDepth} * kSequentialBytes,
                                                    std::size_t{kDepthMeasuredMax} * block_bytes_);
    buffer_.reset(static_cast<std::byte*>(std::aligned_alloc(kAlignment, bytes)));
    if (!buffer_) return make_error(ErrorCode::kResource, "no memory for {} bytes of buffer", bytes);
    auto queue = source_.queue(kDepthMeasuredMax, {buffer_.get(), bytes});
    if (!queue) return queue.error();
    queue_ = *std::move(queue);
    return {};
  }

  /// The median of single reads, in microseconds.
  Result<double> serial_us() {
    std::vector<double> samples;
    for (const auto begin = Clock::now(); samples.empty() || Clock::now() - begin < kSerialTime;) {
      const auto start = Clock::now();
      if (auto sent = send(0, block_bytes_, blocks_.next()); !sent) return sent.error();
      if (auto came = receive(1); !came) return came.error();
      samples.push_back(1e6 * seconds_since(start));
    }
    std::ranges::nth_element(samples, samples.begin() + static_cast<std::ptrdiff_t>(samples.size() / 2));
    return samples[samples.size() / 2];
  }

  struct Done {
    double reads = 0;
    double seconds = 0;
    double rate() const { return reads / seconds; }
  };

  /// Keeps `depth` reads of `bytes` in flight for a while; `offset` names the next.
  template <class Offset>
  Result<Done> keep_in_flight(std::uint32_t depth, std::uint32_t bytes, Clock::duration time, Offset offset) {
    std::vector<std::uint32_t> idle(depth);
    std::iota(idle.begin(), idle.end(), 0u);
    Done done;
    const auto start = Clock::now();
    while (done.reads == 0 || Clock::now() - start < time) {
      for (const std::uint32_t slot : idle) {
        if (auto sent = send(slot, bytes, offset()); !sent) return sent.error();
      }
      auto came = receive((depth + 1) / 2);  // as a store's readers do
      if (!came) return came.error();
      done.reads += static_cast<double>(came->size());
      idle.assign(came->begin(), came->end());
    }
    done.seconds = seconds_since(start);
    for (auto flying = depth - idle.size(); flying > 0;) {
      auto came = receive(flying);
      if (!came) return came.error();
      flying -= came->size();
    }
    return done;
  }

  Result<Done> random_reads(std::uint32_t depth, Clock::duration time = kDepthTime) {
    return keep_in_flight(depth, block_bytes_, time, [this] { return blocks_.next(); });
  }

  Result<double> sequential_bytes_per_s() {
    const std::uint64_t bytes =
        std::min<std::uint64_t>(kSequentialBytes, source_.file_bytes(0) / 8 / block_bytes_ * block_bytes_);
    const std::uint64_t pieces = source_.file_bytes(0) / bytes;
    std::uint64_t next = blocks_.next() / bytes;
    auto done = keep_in_flight(kSequentialDepth, static_cast<std::uint32_t>(bytes), kSequentialTime,
                               [&] { return next++ % pieces * bytes; });
    if (!done) return done.error();
    return done->rate() * static_cast<double>(bytes);
  }

 private:
  Result<void> send(std::uint32_t slot, std::uint32_t bytes, std::uint64_t offset) {
    requests_[slot] = {0, bytes, offset, buffer_.get() + std::size_t{slot} * bytes, slot};
    return queue_->submit({&requests_[slot], 1});
  }

  /// Slots of the reads that came, `at_least` so many.
  Result<std::span<const std::uint32_t>> receive(std::size_t at_least) {
    std::size_t count = 0;
    while (count < at_least) {
      const std::span<Completion> room = std::span(completions_).first(kDepthMeasuredMax - count);
      auto reaped = queue_->reap(at_least - count, room);
      if (!reaped) return reaped.error();
      for (const Completion& completion : room.first(*reaped)) {
        const ReadRequest& request = requests_[completion.tag];
        if (completion.result == -EINTR || completion.result == -EAGAIN) {
          if (auto again = queue_->submit({&request, 1}); !again) return again.error();
        } else if (completion.result <= 0) {
          return make_error(ErrorCode::kIo, "reading {} bytes at offset {} failed: {}", request.bytes, request.offset,
                            completion.result < 0 ? errno_text(-completion.result) : "the file ends there");
        } else {
          came_[count++] = static_cast<std::uint32_t>(completion.tag);
        }
      }
    }
    return std::span<const std::uint32_t>(came_).first(count);
  }

  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };

  BlockSource& source_;
  const std::uint32_t block_bytes_;
  RandomBlocks blocks_;
  std::unique_ptr<std::byte, Free> buffer_;
  std::unique_ptr<ReadQueue> queue_;  // goes before the buffer
  std::array<ReadRequest, kDepthMeasuredMax> requests_{};
  std::array<Completion, kDepthMeasuredMax> completions_{};
  std::array<std::uint32_t, kDepthMeasuredMax> came_{};
};

Result<void> check_large_enough(BlockSource& source) {
  if (source.file_bytes(0) / source.block_bytes() >= kDepthMeasuredMax) return {};
  return make_error(ErrorCode::kUsage, "a file of {} bytes is too small to measure a drive by", source.file_bytes(0));
}

}  // namespace

Result<DriveFigures> measure_drive(BlockSource& source, std::uint64_t seed,
                                   const std::function<void(double share)>& progress) {
  if (auto enough = check_large_enough(source); !enough) return enough.error();
  Measurement measurement(source, seed);
  if (auto ready = measurement.init(); !ready) return ready.error();
  DriveFigures figures;
  figures.block_bytes = source.block_bytes();
  double steps_done = 0;
  const auto step_done = [&] { progress(std::min(1.0, ++steps_done / 20)); };

  auto serial = measurement.serial_us();
  if (!serial) return serial.error();
  figures.serial_us = *serial;
  step_done();

  // Up and down again, so that a drive whose speed drifts does not favour an end.
  std::vector<Measurement::Done> done;
  double best_rate = 1e6 / *serial;
  for (std::uint32_t depth = 1; depth <= kDepthMeasuredMax && depth / best_rate < kDepthSecondsMax; depth *= 2) {
    auto once = measurement.random_reads(depth);
    if (!once) return once.error();
    done.push_back(*once);
    figures.depth_curve.emplace_back(depth, 0);
    best_rate = std::max(best_rate, once->rate());
    step_done();
  }
  for (std::size_t i = done.size(); i-- > 0;) {
    auto again = measurement.random_reads(figures.depth_curve[i].first);
    if (!again) return again.error();
    figures.depth_curve[i].second = (done[i].reads + again->reads) / (done[i].seconds + again->seconds);
    step_done();
  }
  auto sequential = measurement.sequential_bytes_per_s();
  if (!sequential) return sequential.error();
  figures.sequential_bytes_per_s = *sequential;
  figures.best_depth = best_depth(figures.depth_curve);
  progress(1);
  return figures;
}

Result<DriveGlance> glance_at_drive(BlockSource& source, std::uint32_t depth, std::uint64_t seed,
                                    const std::function<void(double share)>& progress) {
  if (auto enough = check_large_enough(source); !enough) return enough.error();
  Measurement measurement(source, seed);
  if (auto ready = measurement.init(); !ready) return ready.error();
  auto serial = measurement.serial_us();
  if (!serial) return serial.error();
  progress(1.0 / (kGlances + 1));
  DriveGlance glance{*serial, std::clamp(depth, 1u, kDepthMeasuredMax), 0};
  while (glance.depth > 1 && glance.depth * *serial / 1e6 > kDepthSecondsMax) glance.depth /= 2;
  Measurement::Done done;
  for (int i = 0; i < kGlances; ++i) {
    auto once = measurement.random_reads(glance.depth, kGlanceTime);
    if (!once) return once.error();
    done.reads += once->reads;
    done.seconds += once->seconds;
    progress((i + 2.0) / (kGlances + 1));
  }
  glance.reads_per_s = done.rate();
  return glance;
}

std::uint32_t best_depth(std::span<const std::pair<std::uint32_t, double>> curve) {
  double best_rate = 0;
  for (const auto& point : curve) best_rate = std::max(best_rate, point.second);
  return std::ranges::find_if(curve, [&](const auto& point) { return point.second >= 0.95 * best_rate; })->first;
}

}  // namespace rowtide::io
