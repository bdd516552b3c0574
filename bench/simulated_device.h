// A block source whose device is a clock: the file lies in memory and reads complete when a drive of a given rate and
// latency would complete them. No system calls, so what limits a reader of it is the store's own processor time.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "io/block_source.h"

namespace rowtide::bench {

struct SimulatedDrive {
  std::uint64_t blocks_per_s = 1'000'000;
  std::chrono::nanoseconds latency = std::chrono::microseconds(80);  // of a read that finds the drive idle
};

/// One file on such a drive; all its queues share the rate. A wait for reads spins, and the copy that a real drive
/// would make by itself (a block from memory that is in no cache: some 0.3 us) is made by the thread that reaps.
class SimulatedSource final : public io::BlockSource {
 public:
  /// `content` must outlive the source; its length is a multiple of the block. `depth` is the device-wide limit.
  SimulatedSource(std::span<const std::byte> content, SimulatedDrive drive, std::uint32_t depth);

  std::uint32_t block_bytes() const override { return kBlockBytes; }
  std::uint64_t file_bytes(std::uint32_t) const override { return content_.size(); }
  const std::string& method() const override { return method_; }
  bool direct() const override { return true; }
  io::InFlightLimit& limit() override { return limit_; }
  Result<std::unique_ptr<io::ReadQueue>> queue(std::uint32_t depth, std::span<std::byte> buffer) override;

  using Clock = std::chrono::steady_clock;
  std::span<const std::byte> content() const { return content_; }
  /// Gives a read of so many bytes the drive's next free time; returns when it will be done.
  Clock::time_point schedule(Clock::time_point now, std::uint32_t bytes);

 private:
  static constexpr std::uint32_t kBlockBytes = 4096;

  std::span<const std::byte> content_;
  std::chrono::nanoseconds latency_;
  std::chrono::nanoseconds block_time_;
  std::atomic<Clock::rep> free_from_{0};  // when the drive has done all it was given
  std::string method_;
  io::InFlightLimit limit_;
};

}  // namespace rowtide::bench
