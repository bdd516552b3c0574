// One device-wide limit on reads in flight, shared by every reader of every store on that device.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace rowtide::io {

/// What a batch of reads is for, the most pressing first.
enum class Urgency : std::uint8_t {
  kUrgent,    // somebody waits for these few rows: a decode step
  kBulk,      // somebody waits for these many rows: a prefill chunk
  kPrefetch,  // nobody waits yet
};

/// Counts permits; never waits. A reader with a batch in progress is a party, of its batch's urgency. What a
/// party may hold is its even share of what its urgency may take:
///
///   urgent    the limit
///   bulk      the limit; a third of it while an urgent party is joined, and for kUrgentLingers after the last has left
///   prefetch  the limit; a third of it while a bulk party is joined; nothing while an urgent one is
///
/// Urgent parties linger because a decoder comes back with every token: a bulk batch that filled the device in between
/// would be in the way of each of its reads. "A third" is never more than 42, which loses a device little of its speed.
///
/// Nothing is taken back: a batch lets permits go as its reads complete, and gets no new ones while it holds
/// its share. Whoever waits must get on, whatever others hold: a party that holds none always gets one, beyond
/// the limit if need be, but for prefetch while an urgent party is joined, which must ask again later. Urgent
/// parties may go a third beyond the limit, so that a decode step need not wait for a read of a bulk batch to come
/// back. So at most limit + limit / 3 + parties permits are out.
/// Threads: any.
class InFlightLimit {
 public:
  using Clock = std::chrono::steady_clock::time_point (*)();
  static constexpr std::chrono::milliseconds kUrgentLingers{50};

  explicit InFlightLimit(std::uint32_t limit, Clock now = std::chrono::steady_clock::now)
      : limit_(static_cast<std::int32_t>(limit)), now_(now), free_(limit_) {}

  void join(Urgency urgency) { parties_[index(urgency)].fetch_add(1, std::memory_order_relaxed); }
  void leave(Urgency urgency) {
    if (urgency == Urgency::kUrgent) urgent_until_.store(now_() + kUrgentLingers, std::memory_order_relaxed);
    parties_[index(urgency)].fetch_sub(1, std::memory_order_relaxed);
  }

  /// Takes up to `wanted` (at least 1) permits for a joined party that holds `held` already; returns how many.
  std::uint32_t acquire(std::uint32_t wanted, std::uint32_t held, Urgency urgency);
  void release(std::uint32_t permits) {
    free_.fetch_add(static_cast<std::int32_t>(permits), std::memory_order_relaxed);
  }

  /// The limit of the device `device_id` (st_dev). It is made with the `limit` of whoever asks first, which others
  /// then share whatever they ask for, and lives as long as anybody holds it.
  static std::shared_ptr<InFlightLimit> of_device(std::uint64_t device_id, std::uint32_t limit);

 private:
  static std::size_t index(Urgency urgency) { return static_cast<std::size_t>(urgency); }
  std::int32_t parties(Urgency urgency) const { return parties_[index(urgency)].load(std::memory_order_relaxed); }
  std::int32_t share_of(Urgency urgency) const;

  const std::int32_t limit_;
  const Clock now_;
  std::atomic<std::chrono::steady_clock::time_point> urgent_until_{};
  std::atomic<std::int32_t> free_;
  std::array<std::atomic<std::int32_t>, 3> parties_{};
};

}  // namespace rowtide::io
