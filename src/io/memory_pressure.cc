#include "io/memory_pressure.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "io/kernel_text.h"
#include "io/memory_cgroup.h"

namespace rowtide::io {
namespace {

constexpr double kShortStalledShare = 0.05, kCalmStalledShare = 0.01;
constexpr double kShortRefaultedPerSecond = 16 << 20, kCalmRefaultedPerSecond = 4 << 20;
constexpr std::uint64_t kShortestIntervalUs = 100'000;
constexpr std::uint64_t kFirstPatienceUs = 30'000'000, kLongestPatienceUs = 32 * kFirstPatienceUs;
constexpr std::uint64_t kYieldShare = 8, kGrowShare = 32;

/// "some avg10=0.00 avg60=0.00 avg300=0.00 total=12345", then a line for "full" (the kernel's accounting/psi).
std::optional<std::uint64_t> stalled_us(const std::string& path) {
  const std::string text = kernel_text(path).value_or("");
  const std::size_t total = text.find("total=");
  if (!text.starts_with("some ") || total > text.find('\n')) return std::nullopt;
  return leading_number(std::string_view(text).substr(total + 6));
}

/// The counter's names in cgroups of version 1 and 2 and in /proc/vmstat, since 5.9 and before it counted anonymous
/// memory apart.
std::optional<std::uint64_t> refaulted_bytes(const std::string& path) {
  const auto page_bytes = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  const std::string text = kernel_text(path).value_or("");
  for (const char* name :
       {"total_workingset_refault_file", "total_workingset_refault", "workingset_refault_file", "workingset_refault"}) {
    if (const auto pages = named_number(text, name)) return *pages * page_bytes;
  }
  return std::nullopt;
}

/// How much a total has grown a microsecond; nothing for one that is missing, or that has gone back because it is
/// another cgroup's now.
std::optional<double> rate(std::optional<std::uint64_t> before, std::optional<std::uint64_t> after, std::uint64_t us) {
  if (!before || !after || *after < *before) return std::nullopt;
  return static_cast<double>(*after - *before) / static_cast<double>(us);
}

std::uint64_t whole_segments(std::uint64_t bytes, std::uint64_t segment_bytes) {
  return std::max<std::uint64_t>(bytes / segment_bytes, 1) * segment_bytes;
}

}  // namespace

PressureSample sample_pressure(const std::string& root) {
  PressureSample sample;
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  sample.at_us = static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(now).count());
  for (const std::string& folder : own_cgroup_folders(root)) {
    if (!sample.stalled_us) sample.stalled_us = stalled_us(folder + "/memory.pressure");
    if (!sample.refaulted_bytes) sample.refaulted_bytes = refaulted_bytes(folder + "/memory.stat");
  }
  if (!sample.stalled_us) sample.stalled_us = stalled_us(root + "/proc/pressure/memory");
  if (!sample.refaulted_bytes) sample.refaulted_bytes = refaulted_bytes(root + "/proc/vmstat");
  return sample;
}

Pressure pressure_between(const PressureSample& before, const PressureSample& after) {
  if (after.at_us <= before.at_us) return Pressure::kSome;
  const std::uint64_t us = after.at_us - before.at_us;
  const auto stalled = rate(before.stalled_us, after.stalled_us, us);
  const auto refaulted = rate(before.refaulted_bytes, after.refaulted_bytes, us);
  if (!stalled && !refaulted) return Pressure::kSome;
  const double refaulted_per_second = refaulted.value_or(0) * 1e6;
  const bool may_wait = !stalled || *stalled >= kCalmStalledShare;
  const bool waits_long = stalled && *stalled >= kShortStalledShare;
  if (waits_long || (may_wait && refaulted_per_second >= kShortRefaultedPerSecond)) return Pressure::kShort;
  const bool waits = stalled && may_wait;
  return waits || refaulted_per_second >= kCalmRefaultedPerSecond ? Pressure::kSome : Pressure::kCalm;
}

MemoryYielding::MemoryYielding(std::uint64_t floor_bytes, std::uint64_t budget_bytes, std::uint64_t segment_bytes)
    : floor_bytes_(floor_bytes),
      budget_bytes_(budget_bytes),
      segment_bytes_(segment_bytes),
      patience_us_(kFirstPatienceUs) {}

MemoryYielding::Decision MemoryYielding::decide(const PressureSample& sample, std::uint64_t held_bytes,
                                                std::uint64_t available_bytes) {
  if (!last_) {
    calm_since_us_ = sample.at_us;
    last_ = sample;
    return {};
  }
  if (sample.at_us < last_->at_us + kShortestIntervalUs) return {};
  const Pressure pressure = pressure_between(*last_, sample);
  last_ = sample;
  if (pressure == Pressure::kCalm) return grow(sample.at_us, held_bytes, available_bytes);
  calm_since_us_ = sample.at_us;
  return pressure == Pressure::kShort ? yield(held_bytes) : Decision{};
}

MemoryYielding::Decision MemoryYielding::yield(std::uint64_t held_bytes) {
  if (std::exchange(grown_, false)) patience_us_ = std::min(patience_us_ * 2, kLongestPatienceUs);
  const std::uint64_t most =
      held_bytes > floor_bytes_ ? (held_bytes - floor_bytes_) / segment_bytes_ * segment_bytes_ : 0;
  const std::uint64_t bytes = std::min(whole_segments(held_bytes / kYieldShare, segment_bytes_), most);
  return bytes == 0 ? Decision{} : Decision{Action::kYield, bytes};
}

MemoryYielding::Decision MemoryYielding::grow(std::uint64_t at_us, std::uint64_t held_bytes,
                                              std::uint64_t available_bytes) {
  if (at_us - calm_since_us_ < patience_us_) return {};
  const std::uint64_t most =
      budget_bytes_ > held_bytes ? (budget_bytes_ - held_bytes) / segment_bytes_ * segment_bytes_ : 0;
  if (most == 0) {
    const bool proven = at_us - std::max(calm_since_us_, grown_at_us_) >= patience_us_;
    if (proven) patience_us_ = kFirstPatienceUs;
    return {};
  }
  const std::uint64_t bytes = std::min(whole_segments(budget_bytes_ / kGrowShare, segment_bytes_), most);
  if (available_bytes < 2 * bytes) return {};
  grown_at_us_ = at_us;
  grown_ = true;
  return {Action::kGrow, bytes};
}

}  // namespace rowtide::io
