// Where rows are to be kept: what is decided, what is refused, and what is said about it.
#include <gtest/gtest.h>

#include <mutex>
#include <string>
#include <vector>

#include "io/system_memory.h"
#include "rowtide/log.h"
#include "support/memory_disk.h"
#include "support/virtual_drive.h"

namespace rowtide {
namespace {

std::shared_ptr<VirtualDrive> drive_of(std::uint64_t table_mib) {
  return std::make_shared<VirtualDrive>(rule_table(1024, {table_mib * 1024}, 8));
}

class Residency : public testing::Test {
 protected:
  Residency() {
    set_log_sink([this](LogLevel level, std::string_view line) {
      std::lock_guard lock(mutex_);
      if (level == LogLevel::kInfo) said_.emplace_back(line);
    });
  }
  ~Residency() override { set_log_sink({}); }

  std::vector<std::string> said() {
    std::lock_guard lock(mutex_);
    return std::exchange(said_, {});
  }
  void expect_said(std::initializer_list<std::string_view> parts) {
    const auto lines = said();
    ASSERT_EQ(lines.size(), 1u);
    for (const std::string_view part : parts) EXPECT_NE(lines[0].find(part), std::string::npos) << lines[0];
  }
  static void expect_served(Store& store) {
    auto reader = store.reader();
    ASSERT_TRUE(reader.ok()) << reader.error().message;
    const RowId last = store.table().rows - 1;
    ASSERT_TRUE(reads_rule_rows(**reader, store.table(), std::vector<RowId>{0, last, last / 2, 0}));
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> said_;
};

TEST_F(Residency, AutoKeepsATableThatFitsAndSaysWhy) {
  const auto drive = drive_of(8);
  const auto store = open_on(drive, {.memory_bytes = 64 * kMiB, .mode = Mode::kAuto});
  EXPECT_EQ(store->mode(), Mode::kResident);
  expect_said({"table.weight", "resident", "8.0 MiB", "64.0 MiB", "available"});
  expect_served(*store);
}

TEST_F(Residency, AutoCachesATableThatDoesNotFitAndSaysWhy) {
  const auto drive = drive_of(100);
  const auto store = open_on(drive, {.memory_bytes = 64 * kMiB, .mode = Mode::kAuto});
  EXPECT_EQ(store->mode(), Mode::kCache);
  expect_said({"table.weight", "cache", "100.0 MiB", "64.0 MiB", "available"});
  expect_served(*store);
}

// 512 TiB: no machine's memory.
TEST_F(Residency, AutoWithoutABudgetGoesByWhatIsAvailable) {
  const auto small = open_on(drive_of(8), {.mode = Mode::kAuto});
  EXPECT_EQ(small->mode(), Mode::kResident);
  EXPECT_EQ(said().size(), 1u);
  Table huge = rule_table(1024, {std::uint64_t{1} << 39}, 8);
  const auto beside = open_on(std::make_shared<VirtualDrive>(huge), {.mode = Mode::kAuto});
  EXPECT_EQ(beside->mode(), Mode::kCache);
  expect_said({"cache", "do not fit"});
  expect_served(*beside);
}

TEST_F(Residency, ModesThatWereNamedAreTakenAsTheyAre) {
  for (const Mode mode : {Mode::kDisk, Mode::kCache, Mode::kResident}) {
    const auto store = open_on(drive_of(4), {.memory_bytes = 64 * kMiB, .mode = mode});
    EXPECT_EQ(store->mode(), mode);
    EXPECT_TRUE(said().empty());
    expect_served(*store);
  }
}

// Two tables of which one fits: the second is cached, not refused.
TEST_F(Residency, AutoLooksAtWhatIsLeftOfTheBudget) {
  const auto first = open_on(drive_of(30), {.memory_bytes = 90 * kMiB, .mode = Mode::kAuto});
  ASSERT_EQ(first->mode(), Mode::kResident);
  const auto second = try_open_on(drive_of(30), {.memory_bytes = 90 * kMiB, .mode = Mode::kAuto});
  ASSERT_TRUE(second.ok()) << second.error().message;
  EXPECT_EQ((*second)->mode(), Mode::kCache);
  expect_served(**second);
  expect_served(*first);
}

// Refused before a byte of the table is read, and the other mode is named.
TEST_F(Residency, ResidentIsRefusedAtOnceWhereItCannotBe) {
  const auto drive = drive_of(100);
  const auto by_budget = try_open_on(drive, {.memory_bytes = 64 * kMiB, .mode = Mode::kResident});
  expect_refused(by_budget, ErrorCode::kResource,
                 {"table.weight", "64.0 MiB", "140.0 MiB", "raise the budget", "mode cache"});
  const auto huge = std::make_shared<VirtualDrive>(rule_table(1024, {std::uint64_t{1} << 39}, 8));
  const auto by_memory = try_open_on(huge, {.mode = Mode::kResident});
  expect_refused(by_memory, ErrorCode::kResource, {"table.weight", "available", "mode cache"});
  EXPECT_EQ(drive->reads() + huge->reads(), 0u);

  const auto instead = open_on(drive, {.memory_bytes = 64 * kMiB, .mode = Mode::kCache});
  expect_served(*instead);
}

TEST_F(Residency, ResidentNeedsNoMoreThanItSays) {
  const auto drive = drive_of(100);
  const auto least = try_open_on(drive, {.memory_bytes = 140 * kMiB, .mode = Mode::kResident});
  ASSERT_TRUE(least.ok()) << least.error().message;
  expect_served(**least);
}

TEST_F(Residency, ABudgetBelowTheFloorIsRefused) {
  for (const Mode mode : {Mode::kDisk, Mode::kCache, Mode::kResident, Mode::kAuto}) {
    expect_refused(try_open_on(drive_of(1), {.memory_bytes = kMemoryBytesMin - 1, .mode = mode}), ErrorCode::kUsage,
                   {"too small", "32.0 MiB"});
    expect_refused(try_open_on(drive_of(1), {.memory_bytes = 1, .mode = mode}), ErrorCode::kUsage, {"1 bytes"});
  }
  const auto floor = open_on(drive_of(100), {.memory_bytes = kMemoryBytesMin, .mode = Mode::kCache});
  expect_served(*floor);
}

TEST_F(Residency, ABudgetBeyondTheMachineIsRefused) {
  for (const std::uint64_t bytes : {std::uint64_t{1} << 50, ~std::uint64_t{0}}) {
    expect_refused(try_open_on(drive_of(1), {.memory_bytes = bytes, .mode = Mode::kCache}), ErrorCode::kResource,
                   {"more than is available", "give less"});
  }
  expect_served(*open_on(drive_of(1), {.memory_bytes = 64 * kMiB}));  // what was refused left nothing behind
}

TEST_F(Residency, ABudgetLargerThanTheTableIsNoHarm) {
  const auto store = open_on(drive_of(1), {.memory_bytes = 512 * kMiB, .mode = Mode::kCache});
  expect_served(*store);
  EXPECT_LE(store->counters().memory_bytes, 64 * kMiB);  // taken as it fills
}

// One budget a process: whoever comes second with another one is refused, in whatever order they come.
TEST_F(Residency, AnotherBudgetIsRefusedInEitherOrder) {
  for (const auto& [first_mib, second_mib] : {std::pair{64, 96}, std::pair{96, 64}}) {
    const auto first = open_on(drive_of(1), {.memory_bytes = first_mib * kMiB});
    const auto second = try_open_on(drive_of(1), {.memory_bytes = second_mib * kMiB});
    expect_refused(second, ErrorCode::kUsage, {"64.0 MiB", "96.0 MiB", "share"});
    const auto unnamed = open_on(drive_of(1), {});
    EXPECT_EQ(unnamed->counters().budget_bytes, first_mib * kMiB);
    expect_served(*unnamed);
  }
}

// The first takes so little that a third one has nothing left: an error that says what is taken, and both go on.
TEST_F(Residency, MoreStoresAndReadersThanTheBudgetHolds) {
  const auto store = open_on(drive_of(100), {.memory_bytes = kMemoryBytesMin, .mode = Mode::kCache});
  std::vector<std::unique_ptr<Reader>> readers;
  Result<std::unique_ptr<Reader>> refused = store->reader();
  for (; refused.ok(); refused = store->reader()) {
    readers.push_back(*std::move(refused));
    ASSERT_LT(readers.size(), 100u);
  }
  expect_refused(refused, ErrorCode::kResource, {"32.0 MiB", "larger budget"});
  ASSERT_GE(readers.size(), 1u);
  for (auto& reader : readers) {
    ASSERT_TRUE(reads_rule_rows(*reader, store->table(), std::vector<RowId>{1, 99'999, 1}));
  }
  const Counters now = store->counters();
  EXPECT_LE(now.memory_bytes, now.budget_bytes);
}

}  // namespace
}  // namespace rowtide
