// Whose huge pages the segments may have.
#include "cache/segment_arena.h"

#include <gtest/gtest.h>

#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>

#include "support/emulated.h"

namespace rowtide {
namespace {

/// What the kernel has been told of the memory at `address`: the two-letter flags of its mapping.
std::string flags_of(const std::byte* address) {
  const auto sought = reinterpret_cast<std::uintptr_t>(address);
  bool there = false;
  std::ifstream list("/proc/self/smaps");
  for (std::string line; std::getline(list, line);) {
    std::uintptr_t begin = 0, end = 0;
    if (std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR " ", &begin, &end) == 2)
      there = begin <= sought && sought < end;
    if (there && line.starts_with("VmFlags:")) return line.substr(8) + " ";
  }
  return {};
}

bool advised(std::uint64_t page_bytes, const std::string& flag) {
  const SegmentArena arena(8, page_bytes);
  return flags_of(arena.base()).find(" " + flag + " ") != std::string::npos;
}

TEST(SegmentArena, HasHugePagesWhereOneIsNoLargerThanASegment) {
  if (is_emulated()) GTEST_SKIP() << "the emulator drops the advice";
  if (!std::ifstream("/sys/kernel/mm/transparent_hugepage/enabled")) GTEST_SKIP() << "this kernel has no huge pages";
  EXPECT_TRUE(advised(4096, "hg"));
  for (const std::uint64_t page_bytes : {16384, 65536}) {
    EXPECT_FALSE(advised(page_bytes, "hg")) << page_bytes;
    EXPECT_TRUE(advised(page_bytes, "nh")) << page_bytes;
  }
}

}  // namespace
}  // namespace rowtide
