// The budget against what the kernel counts: each case in a process of its own.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <random>
#include <thread>
#include <vector>

#include "io/system_memory.h"
#include "support/emulated.h"
#include "support/process_memory.h"
#include "support/real_cgroup.h"
#include "support/sanitized.h"
#include "support/soon.h"
#include "support/temp_dir.h"
#include "support/virtual_drive.h"

namespace rowtide {
namespace {

class Memory : public testing::Test {
 protected:
  void SetUp() override {
    if (is_emulated()) GTEST_SKIP() << "an emulator's own memory is among what the kernel counts";
    if (kSanitized) GTEST_SKIP() << "a sanitizer's own memory is among what the kernel counts";
  }
};

// 8 GiB; a bundle is 1 KiB in one block or two.
constexpr std::uint64_t kRows = 64 * kMiB;
Table large_table(std::uint32_t bundle_rows = 8) { return rule_table(128, {kRows}, bundle_rows); }

/// Bundles [first, first + count), each of neighbouring rows.
void neighbours(std::vector<RowId>& ids, std::uint64_t first, std::uint32_t bundle_rows) {
  for (std::size_t i = 0; i < ids.size(); ++i) {
    ids[i] = (first + i / bundle_rows) * 7919 * bundle_rows % kRows + i % bundle_rows;
  }
}

/// Growth of private memory and what the counters say is held, in KiB, as one number.
struct Held {
  std::uint64_t grown_kib, counted_kib;
};
std::uint64_t packed(std::uint64_t grown, std::uint64_t counted) { return grown / 1024 << 32 | counted / 1024; }
Held unpacked(std::uint64_t number) { return {number >> 32, number & 0xFFFF'FFFF}; }

// Every buffer is counted: what the counters sum up to is what the process has taken. A memory that grows for hours
// is seen to be the cache becoming warm.
TEST_F(Memory, TheCountersAreWhatTheProcessHolds) {
  for (const std::uint32_t parts : {1u, 2u, 8u}) {  // so much of the budget, in quarters, has been asked for
    const Held held = unpacked(in_child([parts]() -> std::uint64_t {
      std::vector<RowId> ids(std::size_t{8192} * 8);
      std::vector<std::byte> out(ids.size() * 128);
      auto drive = std::make_shared<VirtualDrive>(large_table());
      const std::uint64_t before = anonymous_bytes();
      auto store = try_open_on(drive, {.memory_bytes = 256 * kMiB, .mode = Mode::kCache});
      auto reader = (*store)->reader();
      for (std::uint64_t asked = 0; asked < parts * 64 * kMiB / 1024; asked += 8192) {
        neighbours(ids, asked, 8);
        if (!(*reader)->read(ids, raw(out))) return 0;
      }
      return packed(anonymous_bytes() - before, (*store)->counters().memory_bytes);
    }));
    EXPECT_LE(held.grown_kib, held.counted_kib * 105 / 100 + 1024) << parts;
    if (parts == 8) {
      EXPECT_GE(held.counted_kib, std::uint64_t{240} * 1024);
      EXPECT_GE(held.grown_kib, held.counted_kib * 95 / 100);
    }
  }
}

TEST_F(Memory, TheCountersAreWhatAResidentTableHolds) {
  const Held held = unpacked(in_child([]() -> std::uint64_t {
    auto drive = std::make_shared<VirtualDrive>(rule_table(128, {kMiB}, 8));  // 128 MiB
    std::vector<RowId> ids(8192);
    std::vector<std::byte> out(ids.size() * 128);
    const std::uint64_t before = anonymous_bytes();
    auto store = try_open_on(drive, {.memory_bytes = 256 * kMiB, .mode = Mode::kResident});
    auto reader = (*store)->reader();
    if (!soon([&] { return (*store)->counters().resident_rows == kMiB; })) return 0;
    std::iota(ids.begin(), ids.end(), 1000);
    if (!(*reader)->read(ids, raw(out)) || !are_rule_rows(drive->table(), ids, out)) return 0;
    return packed(anonymous_bytes() - before, (*store)->counters().memory_bytes);
  }));
  EXPECT_GE(held.grown_kib, std::uint64_t{128} * 1024);
  EXPECT_LE(held.grown_kib, held.counted_kib * 105 / 100);
  EXPECT_LE(held.counted_kib, held.grown_kib * 105 / 100 + 8 * 1024);  // a reader's buffer that was not needed
}

/// By how much the process's peak exceeded the budget, in KiB; or an excess that no process has, when a call failed.
constexpr std::uint64_t kFailed = ~std::uint64_t{0};
constexpr std::uint64_t kExcessMostKib = 64 * 1024;

struct Load {
  Mode mode = Mode::kCache;
  std::uint64_t table_rows = kRows;
  std::uint32_t bundle_rows = 8;
  unsigned readers = 1, tables = 1;
  std::size_t batch_rows = 65'536;
  unsigned batches = 4;
  std::uint64_t memory_bytes = 256 * kMiB;
};

std::uint64_t excess_kib(const Load& load) {
  return in_child([&load]() -> std::uint64_t {
    std::vector<std::vector<std::byte>> outs(load.readers);
    std::vector<std::vector<RowId>> ids(load.readers);
    for (unsigned r = 0; r < load.readers; ++r) {
      outs[r].assign(load.batch_rows * 128, std::byte{1});  // the caller's own, there before
      ids[r].assign(load.batch_rows, 1);
    }
    restart_peak();
    const std::uint64_t before = peak_bytes();
    std::vector<std::shared_ptr<Store>> stores;
    for (unsigned t = 0; t < load.tables; ++t) {
      auto drive = std::make_shared<VirtualDrive>(rule_table(128, {load.table_rows}, load.bundle_rows));
      auto store = try_open_on(drive, {.memory_bytes = load.memory_bytes, .mode = load.mode});
      if (!store) return kFailed;
      stores.push_back(*store);
    }
    std::atomic<bool> failed = false;
    std::vector<std::thread> threads;
    for (unsigned r = 0; r < load.readers; ++r) {
      threads.emplace_back([&, r] {
        Store& store = *stores[r % stores.size()];
        auto reader = store.reader();
        for (unsigned batch = 0; batch < load.batches && reader; ++batch) {
          std::mt19937_64 random(100 * r + batch);
          for (std::size_t i = 0; i < ids[r].size(); ++i) {
            ids[r][i] = i % load.bundle_rows == 0 ? random() % load.table_rows / load.bundle_rows * load.bundle_rows
                                                  : ids[r][i - 1] + 1;
          }
          if (!(*reader)->read(ids[r], raw(outs[r]))) failed = true;
          if (store.counters().memory_bytes > load.memory_bytes) failed = true;
        }
        if (!reader) failed = true;
      });
    }
    for (auto& thread : threads) thread.join();
    if (failed) return kFailed;
    const std::uint64_t grown = peak_bytes() - before;
    return grown > load.memory_bytes ? (grown - load.memory_bytes) / 1024 : 0;
  });
}

TEST_F(Memory, TheProcessStaysWithinBudgetAnd64MiB) {
  EXPECT_LE(excess_kib({.batches = 12}), kExcessMostKib) << "one reader";
  EXPECT_LE(excess_kib({.readers = 4, .batches = 4}), kExcessMostKib) << "several readers";
  EXPECT_LE(excess_kib({.readers = 4, .tables = 2, .batches = 4}), kExcessMostKib) << "two tables";
  EXPECT_LE(excess_kib({.mode = Mode::kResident, .table_rows = kMiB, .readers = 2}), kExcessMostKib) << "resident";
  EXPECT_LE(excess_kib({.mode = Mode::kResident, .table_rows = kMiB / 2, .readers = 2, .tables = 2}), kExcessMostKib)
      << "two resident tables";
}

// The largest batches there are. With single rows they need most beside the rows.
TEST_F(Memory, TheLargestBatchesStayWithinIt) {
  constexpr std::size_t kBatchRowsMost = std::size_t{1} << 20;
  EXPECT_LE(excess_kib({.batch_rows = kBatchRowsMost, .batches = 3}), kExcessMostKib) << "bundles";
  EXPECT_LE(excess_kib({.readers = 2, .batch_rows = kBatchRowsMost, .batches = 2}), kExcessMostKib) << "two readers";
}
TEST_F(Memory, TheLargestBatchesOfSingleRowsStayWithinIt) {
  EXPECT_LE(excess_kib({.bundle_rows = 1, .batch_rows = std::size_t{1} << 20, .batches = 2}), kExcessMostKib);
}

// A batch that the budget has no room for is refused, and its memory is not kept; the next one works.
TEST_F(Memory, ABatchThatIsRefusedLeavesNothing) {
  const std::uint64_t grown_kib = in_child([]() -> std::uint64_t {
    auto drive = std::make_shared<VirtualDrive>(large_table(1));
    std::vector<RowId> ids(std::size_t{1} << 20);
    neighbours(ids, 0, 1);
    std::vector<std::byte> out(ids.size() * 128, std::byte{1});
    const std::uint64_t before = anonymous_bytes();
    auto store = try_open_on(drive, {.memory_bytes = kMemoryBytesMin, .mode = Mode::kCache});
    auto reader = (*store)->reader();
    for (int batch = 0; batch < 3; ++batch) {
      const auto refused = (*reader)->read(ids, raw(out));
      if (refused || refused.error().code != ErrorCode::kResource) return kFailed;
      if (!reads_rule_rows(**reader, drive->table(), std::span(ids).first(500))) return kFailed;
    }
    const std::uint64_t after = anonymous_bytes();
    return after > before ? (after - before) / 1024 : 0;  // the test's own memory may shrink
  });
  EXPECT_LE(grown_kib, kMemoryBytesMin / 1024);
}

/// A table of 8 GiB in a file of holes: zeros, but of any size.
class InAFile : public Memory {
 protected:
  static Table sparse_table(const TempDir& dir, std::uint64_t mib) {
    const std::string path = dir.file("table");
    make_file(path, mib * kMiB);
    Table table = rule_table(128, {mib * kMiB / 128}, 8);
    table.components[0].extents[0].path = path;
    table.components[0].extents[0].offset = 0;
    return table;
  }
  static void make_file(const std::string& path, std::uint64_t bytes) {
    std::ofstream(path).put(0);
    std::filesystem::resize_file(path, bytes);
  }

  /// Whether a batch of it comes.
  static bool serves(Store& store) {
    auto reader = store.reader();
    if (!reader) return false;
    std::vector<RowId> ids(4096);
    for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = i * 9973 % store.table().rows;
    std::vector<std::byte> out(ids.size() * 128, std::byte{1});
    return (*reader)->read(ids, raw(out)).ok() && out == std::vector<std::byte>(out.size());
  }
  static bool names(const Error& error, std::string_view word) { return error.message.find(word) != std::string::npos; }

  enum Outcome : std::uint64_t { kNo, kYes };
};

// No copy of the table: 8 GiB are served where there are 256 MiB.
TEST_F(InAFile, ATableManyTimesTheCgroupIsServed) {
  const RealCgroup group(256 * kMiB);
  if (group.folder().empty()) GTEST_SKIP() << RealCgroup::kNone;
  TempDir dir;
  const Table table = sparse_table(dir, 8192);
  EXPECT_EQ(in_child([&]() -> std::uint64_t {
              if (!group.join()) return kNo;
              for (const Mode mode : {Mode::kDisk, Mode::kCache, Mode::kAuto}) {
                auto store = Store::open(table, {.mode = mode});
                if (!store || (*store)->counters().budget_bytes > 128 * kMiB || !serves(**store)) return kNo;
              }
              return kYes;
            }),
            kYes);
}

TEST_F(InAFile, ABudgetLargerThanTheCgroupIsRefused) {
  const RealCgroup group(128 * kMiB);
  if (group.folder().empty()) GTEST_SKIP() << RealCgroup::kNone;
  TempDir dir;
  const Table table = sparse_table(dir, 1024);
  EXPECT_EQ(in_child([&]() -> std::uint64_t {
              if (!group.join()) return kNo;
              const auto store = Store::open(table, {.memory_bytes = 512 * kMiB});
              return !store && store.error().code == ErrorCode::kResource && names(store.error(), group.folder()) &&
                             names(store.error(), "512.0 MiB")
                         ? kYes
                         : kNo;
            }),
            kYes);
}

// Memory that something else has taken: refused at once, the other way named, nothing read.
TEST_F(InAFile, ResidentIsRefusedBesideMemoryThatIsTaken) {
  const RealCgroup group(256 * kMiB);
  if (group.folder().empty()) GTEST_SKIP() << RealCgroup::kNone;
  TempDir dir;
  const Table table = sparse_table(dir, 100);
  EXPECT_EQ(in_child([&]() -> std::uint64_t {
              if (!group.join()) return kNo;
              const auto before = Store::open(table, {.mode = Mode::kResident});
              if (!before) return kNo;  // it would fit
              return kYes;
            }),
            kYes);
  EXPECT_EQ(in_child([&]() -> std::uint64_t {
              if (!group.join()) return kNo;
              const std::vector<std::byte> taken(150 * kMiB, std::byte{1});
              const auto store = Store::open(table, {.mode = Mode::kResident});
              if (store || store.error().code != ErrorCode::kResource || !names(store.error(), "mode cache"))
                return kNo;
              const auto instead = Store::open(table, {.mode = Mode::kAuto});
              return instead && (*instead)->mode() == Mode::kCache && serves(**instead) ? kYes : kNo;
            }),
            kYes);
}

// A machine in use has next to no free memory: its page cache holds files. That must change nothing.
TEST_F(InAFile, PagesOfOtherFilesAreNoMemoryTaken) {
  const RealCgroup group(256 * kMiB);
  if (group.folder().empty()) GTEST_SKIP() << RealCgroup::kNone;
  TempDir dir;
  if (lies_in_memory(dir.file(""))) GTEST_SKIP() << "the folder for temporary files lies in memory";
  const Table table = sparse_table(dir, 40);
  const std::string other = dir.file("other");
  make_file(other, 400 * kMiB);
  EXPECT_EQ(in_child([&]() -> std::uint64_t {
              if (!group.join()) return kNo;
              const std::uint64_t budget = default_memory_bytes();
              std::vector<char> piece(kMiB);
              std::ifstream file(other, std::ios::binary);
              while (file.read(piece.data(), static_cast<std::streamsize>(piece.size()))) {
              }
              const auto now = io::available_memory();
              if (!now || !now->cgroup || now->bytes() < 200 * kMiB) return kNo;
              const std::uint64_t again = default_memory_bytes();
              if (again < budget - budget / 20 || again > budget + budget / 20) return kNo;
              const auto store = Store::open(table, {.mode = Mode::kAuto});
              return store && (*store)->mode() == Mode::kResident && names({{}, (*store)->method()}, "depth") &&
                             serves(**store)
                         ? kYes
                         : kNo;
            }),
            kYes);
}

// From hardly anything to enough: an error that says so, or service; never a crash.
TEST_F(InAFile, UnderEveryLimitOnAddressSpaceItServesOrRefuses) {
  TempDir dir;
  const Table table = sparse_table(dir, 64);
  bool refused = false, served = false;
  for (std::uint64_t mib = 1; mib <= 512; mib += 1 + mib / 6) {
    const std::uint64_t outcome = in_child([&]() -> std::uint64_t {
      const std::uint64_t now = process_number("/proc/self/status", "VmSize:") * 1024;
      const rlimit limit{now + mib * kMiB, now + mib * kMiB};
      if (::setrlimit(RLIMIT_AS, &limit) != 0) return 99;
      const Mode modes[] = {Mode::kCache, Mode::kResident, Mode::kAuto, Mode::kDisk};
      auto store = Store::open(table, {.mode = modes[mib % 4]});
      if (!store) return store.error().code == ErrorCode::kResource ? 1 : 90;
      auto reader = (*store)->reader();
      if (!reader) return reader.error().code == ErrorCode::kResource ? 2 : 91;
      std::vector<RowId> ids(64);
      std::iota(ids.begin(), ids.end(), mib);
      std::vector<std::byte> out(ids.size() * 128);
      const auto read = (*reader)->read(ids, raw(out));
      if (!read) return read.error().code == ErrorCode::kResource ? 3 : 92;
      (*store)->prefetch(ids);
      return 10;
    });
    EXPECT_TRUE(outcome >= 1 && outcome <= 10) << mib << " MiB: " << outcome;
    refused = refused || outcome < 10;
    served = served || outcome == 10;
  }
  EXPECT_TRUE(refused);
  EXPECT_TRUE(served);

  EXPECT_EQ(in_child([&]() -> std::uint64_t {
              const std::uint64_t now = process_number("/proc/self/status", "VmSize:") * 1024;
              const rlimit limit{now + 100 * kMiB, now + 100 * kMiB};
              if (::setrlimit(RLIMIT_AS, &limit) != 0) return kNo;
              const auto store = Store::open(table, {.memory_bytes = 512 * kMiB});
              return !store && names(store.error(), "ulimit -v") ? kYes : kNo;
            }),
            kYes);
}

}  // namespace
}  // namespace rowtide
