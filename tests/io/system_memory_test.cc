// What there is for this process: on written machines of each kind, and on this one.
#include "io/system_memory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "support/emulated.h"
#include "support/fake_machine.h"
#include "support/memory_disk.h"
#include "support/real_cgroup.h"

namespace rowtide::io {
namespace {

constexpr std::uint64_t kMiB = 1 << 20, kGib = 1 << 30;

constexpr const char* kVersion1Mounts =
    "30 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n"
    "34 30 0:32 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"
    "35 30 0:33 / /sys/fs/cgroup/memory rw,nosuid shared:9 - cgroup cgroup rw,memory\n"
    "41 30 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n";
constexpr const char* kVersion2Mounts =
    "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";

/// A machine of 64 GiB, 40 of them available and next to none free, without cgroups.
class SystemMemory : public testing::Test {
 protected:
  SystemMemory() {
    machine_.put("/proc/meminfo",
                 "MemTotal:       67108864 kB\nMemFree:          943718 kB\nMemAvailable:   41943040 kB\n"
                 "Cached:         40000000 kB\n");
    machine_.put("/proc/self/status", "Name:\tx\nVmSize:\t 3145728 kB\nVmLck:\t       0 kB\n");
    machine_.put("/proc/self/limits",
                 "Limit                     Soft Limit           Hard Limit           Units     \n"
                 "Max address space         unlimited            unlimited            bytes     \n");
  }

  void version_1(const std::string& folder, std::uint64_t limit, std::uint64_t usage, std::uint64_t cache,
                 std::uint64_t hierarchical = 9223372036854771712u) {
    machine_.put(folder + "/memory.limit_in_bytes", std::to_string(limit) + "\n");
    machine_.put(folder + "/memory.usage_in_bytes", std::to_string(usage) + "\n");
    machine_.put(folder + "/memory.stat",
                 fmt::format("cache 1\ninactive_file 1\nactive_file 1\nhierarchical_memory_limit {}\n"
                             "total_inactive_anon 77777777777\ntotal_inactive_file {}\ntotal_active_file {}\n",
                             hierarchical, cache - cache / 4, cache / 4));
  }
  void version_2(const std::string& folder, const std::string& max, const std::string& high, std::uint64_t usage,
                 std::uint64_t cache) {
    machine_.put(folder + "/memory.max", max + "\n");
    machine_.put(folder + "/memory.high", high + "\n");
    machine_.put(folder + "/memory.current", std::to_string(usage) + "\n");
    machine_.put(folder + "/memory.stat",
                 fmt::format("anon 1\nfile 99999999999\ninactive_anon 9\nactive_file {}\ninactive_file {}\n", cache / 2,
                             cache - cache / 2));
  }

  AvailableMemory measure(const std::vector<FileRange>& not_counted = {}) {
    auto memory = available_memory(not_counted, machine_.root());
    if (!memory) throw std::runtime_error(memory.error().message);
    return *std::move(memory);
  }
  std::string at_root(const std::string& path) { return machine_.root() + path; }

  FakeMachine machine_;
};

TEST_F(SystemMemory, IsWhatTheKernelCountsAsAvailableNotWhatIsFree) {
  const AvailableMemory memory = measure();
  EXPECT_EQ(memory.total_bytes, 64 * kGib);
  EXPECT_EQ(memory.free_bytes, 943718u * 1024);
  EXPECT_EQ(memory.bytes(), 40 * kGib);
  EXPECT_FALSE(memory.cgroup.has_value());
  EXPECT_EQ(memory.text(), "40.000 GiB: of the machine's 64.000 GiB the kernel counts 40.000 GiB as available");
}

TEST_F(SystemMemory, SaysWhenTheKernelDoesNot) {
  machine_.put("/proc/meminfo", "MemTotal: 1000 kB\nMemFree: 1000 kB\n");
  expect_refused(available_memory({}, machine_.root()), ErrorCode::kUnsupported, {"/proc/meminfo", "MemAvailable"});
}

TEST_F(SystemMemory, Version1Group) {
  machine_.put("/proc/self/mountinfo", kVersion1Mounts);
  machine_.put("/proc/self/cgroup", "5:cpu,cpuacct:/elsewhere\n4:memory:/pods/a\n0::/\n");
  version_1("/sys/fs/cgroup/memory", 9223372036854771712u, 50 * kGib, 0);
  version_1("/sys/fs/cgroup/memory/pods", 9223372036854771712u, 50 * kGib, 0);
  version_1("/sys/fs/cgroup/memory/pods/a", 4 * kGib, 3 * kGib, 2 * kGib);
  const AvailableMemory memory = measure();
  ASSERT_TRUE(memory.cgroup.has_value());
  EXPECT_EQ(memory.cgroup->folder, at_root("/sys/fs/cgroup/memory/pods/a"));
  EXPECT_EQ(memory.bytes(), 3 * kGib);
  EXPECT_EQ(memory.text(), "3.000 GiB: the cgroup " + memory.cgroup->folder + " allows 4.000 GiB and holds 1.000 GiB");
}

TEST_F(SystemMemory, AGroupAboveMayBindFirst) {
  machine_.put("/proc/self/mountinfo", kVersion1Mounts);
  machine_.put("/proc/self/cgroup", "4:memory:/pods/a\n");
  version_1("/sys/fs/cgroup/memory/pods", 8 * kGib, 7 * kGib, kGib);
  version_1("/sys/fs/cgroup/memory/pods/a", 4 * kGib, kGib, 0);
  EXPECT_EQ(measure().bytes(), 2 * kGib);
  EXPECT_EQ(measure().cgroup->folder, at_root("/sys/fs/cgroup/memory/pods"));
}

TEST_F(SystemMemory, Version1ContainerThatSeesOnlyItsOwnGroup) {
  machine_.put("/proc/self/mountinfo", "35 30 0:33 /docker/1234 /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n");
  for (const char* path : {"/docker/1234", "/", "/../other"}) {
    machine_.put("/proc/self/cgroup", "4:memory:" + std::string(path) + "\n");
    version_1("/sys/fs/cgroup/memory", 9223372036854771712u, kGib, 0, 5 * kGib);  // the limit is of a group around it
    EXPECT_EQ(measure().bytes(), 4 * kGib) << path;
    EXPECT_EQ(measure().cgroup->folder, at_root("/sys/fs/cgroup/memory"));
  }
}

TEST_F(SystemMemory, Version2GroupAndItsThrottle) {
  machine_.put("/proc/self/mountinfo", kVersion2Mounts);
  machine_.put("/proc/self/cgroup", "0::/user.slice/a b\n");
  version_2("/sys/fs/cgroup/user.slice/a b", "max", "max", 3 * kGib, kGib);
  EXPECT_EQ(measure().bytes(), 40 * kGib);
  EXPECT_FALSE(measure().cgroup.has_value());
  version_2("/sys/fs/cgroup/user.slice/a b", std::to_string(8 * kGib), "max", 3 * kGib, kGib);
  EXPECT_EQ(measure().bytes(), 6 * kGib);
  version_2("/sys/fs/cgroup/user.slice/a b", std::to_string(8 * kGib), std::to_string(6 * kGib), 3 * kGib, kGib);
  EXPECT_EQ(measure().bytes(), 4 * kGib);
  version_2("/sys/fs/cgroup/user.slice", std::to_string(9 * kGib), "max", 9 * kGib, kGib);
  EXPECT_EQ(measure().bytes(), kGib);
}

TEST_F(SystemMemory, Version2ContainerWithItsOwnNamespace) {
  machine_.put("/proc/self/mountinfo", kVersion2Mounts);
  machine_.put("/proc/self/cgroup", "0::/\n");
  version_2("/sys/fs/cgroup", std::to_string(2 * kGib), "max", kGib / 2, 0);
  EXPECT_EQ(measure().bytes(), 3 * kGib / 2);
}

TEST_F(SystemMemory, AGroupThatHoldsMoreThanItsLimitLeavesNothing) {
  machine_.put("/proc/self/mountinfo", kVersion2Mounts);
  machine_.put("/proc/self/cgroup", "0::/\n");
  version_2("/sys/fs/cgroup", std::to_string(kGib), "max", 2 * kGib, 0);
  EXPECT_EQ(measure().bytes(), 0u);
}

TEST_F(SystemMemory, MappedFilesAreTakenOffOnceAndWithoutTheTable) {
  machine_.put("/proc/self/mountinfo",
               "25 1 0:24 / /dev/shm rw - tmpfs tmpfs rw\n26 1 254:1 / / rw - ext4 /dev/vda1 rw\n");
  machine_.put("/proc/self/maps",
               "100000000-200000000 r--s 00000000 fe:01 7 /models/weights\n"           // 4 GiB
               "200000000-280000000 r--s 80000000 fe:01 7 /models/weights\n"           // 2 of these again
               "300000000-500000000 r--s 00000000 fe:01 8 /models/with table\n"        // 8 GiB, 6 of them table
               "500000000-700000000 rw-s 00000000 00:18 9 /dev/shm/written\n"          // 8 GiB that take memory already
               "700000000-800000000 rw-s 00000000 00:01 10 /memfd:shared (deleted)\n"  // 4 GiB likewise
               "800000000-900000000 rw-p 00000000 00:00 0 \n");
  EXPECT_EQ(measure().mapped_bytes, 12 * kGib);
  const AvailableMemory memory = measure({{"/models/with table", kGib, 2 * kGib},
                                          {"/models/with table", 3 * kGib, 4 * kGib},
                                          {"/models/other", 0, 4 * kGib}});
  EXPECT_EQ(memory.mapped_bytes, 6 * kGib);
  EXPECT_EQ(memory.bytes(), 34 * kGib);
  EXPECT_EQ(
      memory.text(),
      "34.000 GiB: of the machine's 64.000 GiB the kernel counts 40.000 GiB as available, less 6.000 GiB of mapped "
      "files");
}

TEST_F(SystemMemory, LockedFilesAreNotTakenOff) {
  const std::string smaps =
      "100000000-200000000 r--s 00000000 fe:01 7 /models/locked\nRss: 4194304 kB\nVmFlags: rd mr ms lo\n"
      "200000000-300000000 r--s 00000000 fe:01 8 /models/mapped\nRss: 4194304 kB\nVmFlags: rd mr ms\n"
      "300000000-400000000 r--s 00000000 fe:01 9 /models/locked with table\nRss: 3145728 kB\nVmFlags: rd mr ms lo\n";
  machine_.put("/proc/self/smaps", smaps);
  machine_.put("/proc/self/status", "VmSize:\t 3145728 kB\nVmLck:\t  8388608 kB\n");
  EXPECT_EQ(measure().mapped_bytes, 5 * kGib);
  // Which 3 of the last file's 4 GiB are locked cannot be known; at least 1 of them is outside of the table's 2.
  EXPECT_EQ(measure({{"/models/locked with table", 0, 2 * kGib}}).mapped_bytes, 5 * kGib);
}

TEST_F(SystemMemory, MappedFilesFillACgroupToo) {
  machine_.put("/proc/self/mountinfo", kVersion2Mounts);
  machine_.put("/proc/self/cgroup", "0::/\n");
  version_2("/sys/fs/cgroup", std::to_string(8 * kGib), "max", 4 * kGib, 3 * kGib);
  machine_.put("/proc/self/maps", "100000000-240000000 r--s 00000000 fe:01 7 /models/weights\n");
  const AvailableMemory memory = measure();
  EXPECT_EQ(memory.bytes(), 2 * kGib);
  EXPECT_EQ(memory.text(), "2.000 GiB: the cgroup " + at_root("/sys/fs/cgroup") +
                               " allows 8.000 GiB and holds 1.000 GiB, less 5.000 GiB of mapped files");
}

TEST_F(SystemMemory, TheLimitOnAddressSpaceBindsToo) {
  machine_.put("/proc/self/limits", "Max address space         4294967296           unlimited            bytes     \n");
  EXPECT_EQ(measure().bytes(), kGib);
  EXPECT_EQ(measure().text(), "1.000 GiB: the process may use 4.000 GiB of addresses (ulimit -v) and uses 3.000 GiB");
}

TEST(SystemMemoryHere, ACgroupBounds) {
  if (is_emulated()) GTEST_SKIP() << "the emulator takes no memory before it is written, and has its own";
  constexpr std::uint64_t kLimit = 512 * kMiB, kTaken = 128 * kMiB;
  const RealCgroup group(kLimit);
  if (group.folder().empty()) GTEST_SKIP() << RealCgroup::kNone;
  const auto available_after_taking = [&](std::uint64_t taken) {
    return in_child([&]() -> std::uint64_t {
      if (!group.join()) return 1;
      // Taken by the kernel: a write would take as much again for a sanitizer.
      constexpr int kTake = MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE;
      if (taken != 0 && ::mmap(nullptr, taken, PROT_READ | PROT_WRITE, kTake, -1, 0) == MAP_FAILED) return 3;
      const auto memory = available_memory();
      return memory && memory->cgroup && memory->cgroup->folder == group.folder() ? memory->bytes() : 2;
    });
  };
  const std::uint64_t at_first = available_after_taking(0), afterwards = available_after_taking(kTaken);
  EXPECT_LE(at_first, kLimit);
  EXPECT_GT(at_first, kLimit / 2);
  EXPECT_LE(afterwards, kLimit - kTaken);
  EXPECT_GT(afterwards, kLimit / 2 - kTaken);
}

TEST(SystemMemoryHere, AMappedFileIsTakenOffUnlessItIsTheTable) {
  constexpr std::uint64_t kBytes = 64 * kMiB;
  const TempDir dir;
  const std::string path = dir.file("weights");
  if (lies_in_memory(dir.file(""))) GTEST_SKIP() << "the folder for temporary files lies in memory";
  std::ofstream(path).close();
  std::filesystem::resize_file(path, kBytes);
  const auto before = available_memory();
  ASSERT_TRUE(before.ok()) << before.error().message;
  const int descriptor = ::open(path.c_str(), O_RDONLY);
  void* memory = ::mmap(nullptr, kBytes, PROT_READ, MAP_SHARED, descriptor, 0);
  ::close(descriptor);
  ASSERT_NE(memory, MAP_FAILED);
  const auto mapped = available_memory();
  const auto as_table = available_memory({{path, 0, kBytes}});
  ::munmap(memory, kBytes);
  ASSERT_TRUE(mapped.ok() && as_table.ok());
  EXPECT_EQ(mapped->mapped_bytes, before->mapped_bytes + kBytes);
  EXPECT_EQ(as_table->mapped_bytes, before->mapped_bytes);
  EXPECT_LE(mapped->free_bytes, mapped->total_bytes);
  EXPECT_LE(mapped->available_bytes, mapped->total_bytes);
}

TEST(SystemMemoryHere, TheLimitOnAddressSpaceBinds) {
  if (is_emulated()) GTEST_SKIP() << "the emulator sets no limit on addresses";
  const std::uint64_t left = in_child([]() -> std::uint64_t {
    const auto before = available_memory();
    const rlimit limit{before->address_space_bytes + 32 * kMiB, RLIM_INFINITY};
    if (!before || ::setrlimit(RLIMIT_AS, &limit) != 0) return 0;
    const auto memory = available_memory();
    return memory ? memory->bytes() : 0;
  });
  EXPECT_GT(left, 16 * kMiB);
  EXPECT_LE(left, 32 * kMiB);
}

}  // namespace
}  // namespace rowtide::io
