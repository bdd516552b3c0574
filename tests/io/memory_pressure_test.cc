// What is read of the kernel's pressure figures, and what follows from it.
#include "io/memory_pressure.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <vector>

#include "support/fake_machine.h"
#include "support/real_cgroup.h"

namespace rowtide::io {
namespace {

using Action = MemoryYielding::Action;

constexpr std::uint64_t kMib = 1 << 20, kSecond = 1'000'000;

TEST(SamplePressure, OfTheMachine) {
  const FakeMachine machine;
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  machine.put("/proc/pressure/memory",
              "some avg10=1.23 avg60=0.00 avg300=0.00 total=4321\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=17\n");
  machine.put("/proc/vmstat", "workingset_refault_anon 5\nworkingset_refault_file 250\nworkingset_activate_anon 9\n");
  PressureSample sample = sample_pressure(machine.root());
  EXPECT_EQ(sample.stalled_us, 4321u);
  EXPECT_EQ(sample.refaulted_bytes, 250 * page);
  machine.put("/proc/vmstat", "workingset_nodes 1\nworkingset_refault 77\n");  // before 5.9
  EXPECT_EQ(sample_pressure(machine.root()).refaulted_bytes, 77 * page);
}

TEST(SamplePressure, OfTheProcessesOwnGroupWhereThereIsOne) {
  const FakeMachine machine;
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  machine.put("/proc/pressure/memory", "some avg10=0.00 avg60=0.00 avg300=0.00 total=1\nfull total=1\n");
  machine.put("/proc/vmstat", "workingset_refault_file 1\n");
  machine.put("/proc/self/mountinfo", "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
  machine.put("/proc/self/cgroup", "0::/a/b\n");
  machine.put("/sys/fs/cgroup/a/b/memory.pressure", "some avg10=0.00 avg60=0.00 avg300=0.00 total=99\nfull total=5\n");
  machine.put("/sys/fs/cgroup/a/b/memory.stat", "anon 4\nworkingset_refault_anon 8\nworkingset_refault_file 40\n");
  EXPECT_EQ(sample_pressure(machine.root()).stalled_us, 99u);
  EXPECT_EQ(sample_pressure(machine.root()).refaulted_bytes, 40 * page);

  machine.put("/proc/self/mountinfo", "30 23 0:26 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n");
  machine.put("/proc/self/cgroup", "4:memory:/c\n");
  machine.put("/sys/fs/cgroup/memory/c/memory.stat", "workingset_refault_file 2\ntotal_workingset_refault_file 60\n");
  EXPECT_EQ(sample_pressure(machine.root()).stalled_us, 1u);
  EXPECT_EQ(sample_pressure(machine.root()).refaulted_bytes, 60 * page);
}

TEST(SamplePressure, LacksWhatTheKernelDoesNotKeep) {
  const FakeMachine machine;
  EXPECT_FALSE(sample_pressure(machine.root()).stalled_us.has_value());
  EXPECT_FALSE(sample_pressure(machine.root()).refaulted_bytes.has_value());
  machine.put("/proc/pressure/memory", "full avg10=0.00 total=3\n");
  EXPECT_FALSE(sample_pressure(machine.root()).stalled_us.has_value());
}

TEST(SamplePressure, OfThisMachine) {
  const PressureSample before = sample_pressure(), after = sample_pressure();
  EXPECT_GE(after.at_us, before.at_us);
  ASSERT_EQ(before.stalled_us.has_value(), after.stalled_us.has_value());
  ASSERT_EQ(before.refaulted_bytes.has_value(), after.refaulted_bytes.has_value());
  EXPECT_GE(after.stalled_us.value_or(0), before.stalled_us.value_or(0));
  EXPECT_GE(after.refaulted_bytes.value_or(0), before.refaulted_bytes.value_or(0));
}

TEST(SamplePressure, SeesPagesOfAFileThatDoesNotFit) {
  constexpr std::uint64_t kLimit = 64 * kMib, kPiece = kMib, kPieces = 128;
  const RealCgroup group(kLimit);
  if (group.folder().empty()) GTEST_SKIP() << RealCgroup::kNone;
  const TempDir dir;
  if (lies_in_memory(dir.file(""))) GTEST_SKIP() << "the folder for temporary files lies in memory";
  const std::uint64_t refaulted = in_child([&]() -> std::uint64_t {
    std::vector<char> piece(kPiece, 'x');
    const int file = ::open(dir.file("big").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (!group.join()) return 0;
    for (std::uint64_t i = 0; i < kPieces; ++i) {
      if (::pwrite(file, piece.data(), kPiece, static_cast<off_t>(i * kPiece)) < 0) return 0;
    }
    ::fdatasync(file);
    const PressureSample before = sample_pressure();
    for (std::uint64_t i = 0; i < 3 * kPieces; ++i) {
      if (::pread(file, piece.data(), kPiece, static_cast<off_t>(i % kPieces * kPiece)) < 0) return 0;
    }
    return sample_pressure().refaulted_bytes.value_or(0) - before.refaulted_bytes.value_or(0);
  });
  EXPECT_GT(refaulted, kLimit);
}

/// The pressure of two seconds in which the totals grew so much.
Pressure pressure_of(std::optional<std::uint64_t> stalled_us, std::optional<std::uint64_t> refaulted_bytes) {
  PressureSample before{5 * kSecond, 1000, 1 << 30}, after{7 * kSecond, 1000 + stalled_us.value_or(0), 0};
  after.refaulted_bytes = *before.refaulted_bytes + refaulted_bytes.value_or(0);
  if (!stalled_us) before.stalled_us = after.stalled_us = std::nullopt;
  if (!refaulted_bytes) before.refaulted_bytes = after.refaulted_bytes = std::nullopt;
  return pressure_between(before, after);
}

TEST(PressureBetween, WaitingDecides) {
  EXPECT_EQ(pressure_of(0, 0), Pressure::kCalm);
  EXPECT_EQ(pressure_of(19'999, std::nullopt), Pressure::kCalm);
  EXPECT_EQ(pressure_of(20'000, 0), Pressure::kSome);
  EXPECT_EQ(pressure_of(99'999, 0), Pressure::kSome);
  EXPECT_EQ(pressure_of(100'000, 0), Pressure::kShort);
}

TEST(PressureBetween, ReadingAgainCountsWhereTasksWaitOrNobodySays) {
  EXPECT_EQ(pressure_of(0, 64 * kMib), Pressure::kSome);  // another program goes through a big file
  EXPECT_EQ(pressure_of(20'000, 32 * kMib), Pressure::kShort);
  EXPECT_EQ(pressure_of(20'000, 32 * kMib - 2), Pressure::kSome);
  EXPECT_EQ(pressure_of(std::nullopt, 32 * kMib), Pressure::kShort);
  EXPECT_EQ(pressure_of(std::nullopt, 8 * kMib), Pressure::kSome);
  EXPECT_EQ(pressure_of(std::nullopt, 8 * kMib - 2), Pressure::kCalm);
}

TEST(PressureBetween, NothingKnownIsNeitherCalmNorShort) {
  EXPECT_EQ(pressure_of(std::nullopt, std::nullopt), Pressure::kSome);
  const PressureSample sample{kSecond, 1000, 1000};
  EXPECT_EQ(pressure_between(sample, sample), Pressure::kSome);
  EXPECT_EQ(pressure_between({kSecond, 5000, 5000}, {2 * kSecond, 0, 0}), Pressure::kSome);  // moved to another cgroup
}

/// A cache of up to 1,024 MiB in segments of 2, its floor at 101 MiB, asked about once a second.
class Yielding : public testing::Test {
 protected:
  MemoryYielding::Decision after_a_second(std::uint64_t stalled_us) {
    now_.at_us += kSecond;
    *now_.stalled_us += stalled_us;
    const auto decision = yielding_.decide(now_, held_, available_);
    if (decision.action == Action::kYield) held_ -= decision.bytes;
    if (decision.action == Action::kGrow) held_ += decision.bytes;
    EXPECT_EQ(decision.bytes % (2 * kMib), 0u);
    EXPECT_GE(held_, 101 * kMib);
    EXPECT_LE(held_, 1024 * kMib);
    return decision;
  }
  MemoryYielding::Decision calm_second() { return after_a_second(0); }
  MemoryYielding::Decision short_second() { return after_a_second(500'000); }
  /// Seconds of calm until the cache grows; 10,000 if it never does.
  int calm_seconds_to_growth() {
    int seconds = 1;
    while (seconds < 10'000 && calm_second().action != Action::kGrow) ++seconds;
    return seconds;
  }
  void grow_to_budget() {
    for (int second = 0; second < 10'000 && held_ < 1024 * kMib; ++second) calm_second();
    ASSERT_EQ(held_, 1024 * kMib);
  }

  MemoryYielding yielding_{101 * kMib, 1024 * kMib, 2 * kMib};
  PressureSample now_{100 * kSecond, 0, std::nullopt};
  std::uint64_t held_ = 1024 * kMib, available_ = 1024 * kMib;
};

TEST_F(Yielding, HoldsWhileAllIsCalm) {
  for (int second = 0; second < 100; ++second) EXPECT_EQ(calm_second().action, Action::kHold);
}

TEST_F(Yielding, HoldsOnTheFirstSampleWhateverItSays) {
  *now_.stalled_us = 900'000'000;
  EXPECT_EQ(calm_second().action, Action::kHold);
}

TEST_F(Yielding, GivesBackAnEighthAtATimeDownToTheFloor) {
  calm_second();
  EXPECT_EQ(short_second().bytes, 128 * kMib);
  EXPECT_EQ(short_second().bytes, 112 * kMib);
  for (int second = 0; second < 30; ++second) short_second();
  EXPECT_EQ(held_, 102 * kMib);  // the last whole segment above the floor
  EXPECT_EQ(short_second().action, Action::kHold);
}

TEST_F(Yielding, GrowsBackAfterHalfAMinuteOfCalm) {
  calm_second();
  short_second();
  EXPECT_EQ(calm_seconds_to_growth(), 30);
  EXPECT_EQ(held_, (896 + 32) * kMib);
  EXPECT_EQ(calm_second().bytes, 32 * kMib);  // and goes on each second
  grow_to_budget();
  EXPECT_EQ(calm_second().action, Action::kHold);
}

TEST_F(Yielding, BetweenTheThresholdsItDoesNeither) {
  calm_second();
  short_second();
  for (int second = 0; second < 200; ++second) EXPECT_EQ(after_a_second(30'000).action, Action::kHold);
  EXPECT_EQ(calm_seconds_to_growth(), 30);  // the calm begins only now
}

TEST_F(Yielding, GrowsOnlyIntoMemoryThatIsThere) {
  calm_second();
  short_second();
  available_ = 64 * kMib - 1;
  for (int second = 0; second < 100; ++second) EXPECT_EQ(calm_second().action, Action::kHold);
  available_ = 64 * kMib;
  EXPECT_EQ(calm_second().bytes, 32 * kMib);
}

TEST_F(Yielding, WaitsTwiceAsLongEachTimeThatGrowthEndedInPressure) {
  calm_second();
  short_second();
  for (const int seconds : {30, 60, 120, 240, 480, 960, 960}) {
    EXPECT_EQ(calm_seconds_to_growth(), seconds);
    short_second();
    short_second();  // of one shortage: not another failure
  }
}

TEST_F(Yielding, TrustsAgainOnceTheFullBudgetHasLasted) {
  calm_second();
  short_second();
  calm_seconds_to_growth();
  short_second();  // patience is 60 s now
  grow_to_budget();
  for (int second = 0; second < 59; ++second) calm_second();
  short_second();
  EXPECT_EQ(calm_seconds_to_growth(), 120);  // it did not last
  grow_to_budget();
  for (int second = 0; second < 120; ++second) calm_second();
  short_second();
  EXPECT_EQ(calm_seconds_to_growth(), 60);  // it lasted, and the shortage after it is one failure of 30 s
}

TEST_F(Yielding, SamplesInQuickSuccessionCountForNothing) {
  calm_second();
  now_.at_us += 50'000;
  *now_.stalled_us += 50'000;
  EXPECT_EQ(yielding_.decide(now_, held_, available_).action, Action::kHold);
  now_.at_us += 50'000;
  EXPECT_EQ(yielding_.decide(now_, held_, available_).bytes, 128 * kMib);  // half of the tenth that has passed
}

TEST_F(Yielding, DoesNothingWhereTheKernelSaysNothing) {
  now_.stalled_us = std::nullopt;
  for (int second = 0; second < 100; ++second) {
    now_.at_us += kSecond;
    EXPECT_EQ(yielding_.decide(now_, held_, available_).action, Action::kHold);
    EXPECT_EQ(yielding_.decide(now_, 500 * kMib, available_).action, Action::kHold);
  }
}

}  // namespace
}  // namespace rowtide::io
