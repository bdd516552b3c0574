// The list of mappings, the kernel's and a written one.
#include "io/process_maps.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "support/fake_machine.h"

namespace rowtide::io {
namespace {

TEST(ProcessMaps, ReadsEachField) {
  const FakeMachine machine;
  machine.put("/proc/self/maps",
              "00400000-00401000 r--p 00000000 fd:01 131 /usr/bin/a name with spaces\n"
              "7f0000000000-7f0100000000 rw-s 12345678000 fd:01 4294967299              /models/two\\012lines\n"
              "7fff00000000-7fff00021000 rw-p 00000000 00:00 0                          [stack]\n"
              "7fff00030000-7fff00031000 rw-p 00000000 00:00 0 \n");
  const auto mappings = process_mappings(Detail::kPlaces, machine.root());
  ASSERT_EQ(mappings.size(), 4u);
  EXPECT_EQ(mappings[0].path, "/usr/bin/a name with spaces");
  EXPECT_FALSE(mappings[0].writable);
  EXPECT_EQ(mappings[0].bytes(), 4096u);
  EXPECT_EQ(mappings[1].begin, 0x7f0000000000u);
  EXPECT_EQ(mappings[1].end, 0x7f0100000000u);
  EXPECT_EQ(mappings[1].offset, 0x12345678000u);
  EXPECT_TRUE(mappings[1].writable);
  EXPECT_EQ(mappings[1].device, "fd:01");
  EXPECT_EQ(mappings[1].inode, "fd:01 4294967299");
  EXPECT_EQ(mappings[1].path, "/models/two\nlines");
  EXPECT_FALSE(mappings[2].is_file());
  EXPECT_EQ(mappings[3].path, "");
}

TEST(ProcessMaps, CountsWhatIsLocked) {
  const FakeMachine machine;
  machine.put("/proc/self/smaps",
              "7f0000000000-7f0000100000 r--s 00000000 fd:01 131 /models/a\n"
              "Size:               1024 kB\nRss:                 512 kB\nPss:                 256 kB\n"
              "Locked:              256 kB\nVmFlags: rd mr me ms lo\n"
              "7f0000200000-7f0000300000 r--s 00000000 fd:01 132 /models/b\n"
              "Size:               1024 kB\nRss:                 768 kB\nVmFlags: rd mr me ms\n");
  const auto mappings = process_mappings(Detail::kLocked, machine.root());
  ASSERT_EQ(mappings.size(), 2u);
  EXPECT_EQ(mappings[0].locked_bytes, 512u << 10);
  EXPECT_EQ(mappings[1].locked_bytes, 0u);
}

TEST(ProcessMaps, IsEmptyWhereTheKernelDoesNotSay) {
  const FakeMachine machine;
  EXPECT_TRUE(process_mappings(Detail::kPlaces, machine.root()).empty());
}

TEST(ProcessMaps, OfThisProcess) {
  constexpr std::size_t kBytes = 64 << 10;
  const TempDir dir;
  const std::string path = dir.file("weights");
  std::ofstream(path) << std::string(kBytes, 'w');
  const int descriptor = ::open(path.c_str(), O_RDONLY);
  void* memory = ::mmap(nullptr, kBytes, PROT_READ, MAP_SHARED, descriptor, 0);
  ::close(descriptor);
  ASSERT_NE(memory, MAP_FAILED);
  // 64 KiB is the least that kernels allow everybody. Sanitizers make mlock() do nothing.
  const bool locked = ::syscall(SYS_mlock, memory, kBytes) == 0;
  for (const Detail detail : {Detail::kPlaces, Detail::kLocked}) {
    const auto mappings = process_mappings(detail);
    const auto found = std::find_if(mappings.begin(), mappings.end(), [&](const Mapping& mapping) {
      return mapping.begin == reinterpret_cast<std::uintptr_t>(memory);
    });
    ASSERT_NE(found, mappings.end());
    EXPECT_EQ(found->bytes(), kBytes);
    EXPECT_EQ(found->path, std::filesystem::canonical(path));
    EXPECT_EQ(found->locked_bytes, locked && detail == Detail::kLocked ? kBytes : 0u);
  }
  ::munmap(memory, kBytes);
}

}  // namespace
}  // namespace rowtide::io
