// Whether memory is short, and what a cache should do about it: give some back, wait, or take some again.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace rowtide::io {

/// Totals of the kernel at one moment; only differences mean anything.
struct PressureSample {
  std::uint64_t at_us = 0;                       // of a clock that never goes back
  std::optional<std::uint64_t> stalled_us;       // time in which some task waited for memory ("some" of PSI)
  std::optional<std::uint64_t> refaulted_bytes;  // file pages read again that were driven out not long before
};

/// The process's own cgroup's figures where it has them, else the machine's. A figure is missing where the kernel does
/// not keep it (PSI: before 4.20, or switched off). Reads a few files of /proc and of the cgroups. `root` stands before
/// /proc and the mount points.
PressureSample sample_pressure(const std::string& root = "");

/// How short memory was between two samples.
enum class Pressure {
  kCalm,   // nobody waits
  kSome,   // more than calm, too little to act upon; also where nothing is known
  kShort,  // memory is to be given back
};

/// Short: tasks waited for memory in 5 % of the time or more, or 16 MiB a second or more were read again that had been
/// driven out. Calm: under 1 % and under 4 MiB a second. Pages are read again in large numbers when other programs go
/// through big files, too: where it is known that waiting is under 1 %, they are no shortage.
Pressure pressure_between(const PressureSample& before, const PressureSample& after);

/// Decides, sample by sample, how a cache follows the pressure. Yields fast, an eighth of what is held at a time, and
/// grows slowly: by a 32nd of the budget a sample, not before 30 s of calm, and only into memory that is available with
/// as much again to spare. If growth ends in pressure, the next one waits twice as long (at most 16 minutes); a calm as
/// long as that at full budget makes it 30 s again. So a cache that does not fit settles instead of swinging.
/// Not for several threads at once.
class MemoryYielding {
 public:
  enum class Action { kHold, kYield, kGrow };
  struct Decision {
    Action action = Action::kHold;
    std::uint64_t bytes = 0;  // whole segments; 0 for kHold
  };

  /// The cache is to stay between `floor_bytes` and `budget_bytes`, in steps of `segment_bytes`.
  MemoryYielding(std::uint64_t floor_bytes, std::uint64_t budget_bytes, std::uint64_t segment_bytes);

  /// To be called about once a second. `held_bytes`: what the cache may hold at present; `available_bytes`:
  /// available_memory().bytes(). A sample less than a tenth of a second after the last counts for nothing.
  Decision decide(const PressureSample& sample, std::uint64_t held_bytes, std::uint64_t available_bytes);

 private:
  Decision yield(std::uint64_t held_bytes);
  Decision grow(std::uint64_t at_us, std::uint64_t held_bytes, std::uint64_t available_bytes);

  const std::uint64_t floor_bytes_, budget_bytes_, segment_bytes_;
  std::optional<PressureSample> last_;
  std::uint64_t calm_since_us_ = 0;
  std::uint64_t grown_at_us_ = 0;
  std::uint64_t patience_us_;
  bool grown_ = false;  // since the last yield
};

}  // namespace rowtide::io
