// Headers of real size: hundreds of thousands of tensors, in files of hundreds of gigabytes that are holes.
#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <chrono>
#include <iostream>

#include "checkpoint/safetensors.h"
#include "support/large_checkpoint.h"
#include "support/process_memory.h"
#include "support/sanitized.h"
#include "support/temp_dir.h"

namespace rowtide::checkpoint {
namespace {

void expect_large_opens(const std::string& path, const LargeCheckpoint& written) {
  ::malloc_trim(0);  // what writing it took is none of the reading
  restart_peak();
  const std::uint64_t before = peak_bytes();
  const auto start = std::chrono::steady_clock::now();
  auto opened = open_safetensors(path, io::Disk{});
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  const std::uint64_t grown = std::max(peak_bytes(), before) - before;
  ASSERT_TRUE(opened.ok()) << opened.error().message;
  EXPECT_EQ(opened->tensors().size(), written.tensors);
  std::uint64_t bytes = 0;
  for (const SafetensorsFile& file : opened->files()) bytes += file.bytes;
  EXPECT_EQ(bytes, written.bytes);
  std::cout << fmt::format("{} tensors, {:.1f} MB of headers and index: {:.0f} ms, {} MiB\n", written.tensors,
                           static_cast<double>(written.header_bytes) / 1e6, 1e3 * took.count(), grown >> 20);
  if (kSanitized) return;  // it holds memory of its own
  EXPECT_LT(grown, 256u << 20);
}

TEST(SafetensorsSize, OneFileOfManyTensors) {
  if (kSanitized) GTEST_SKIP() << "takes long";
  const TempDir folder;
  const LargeCheckpoint written = write_large_qwen(folder.file(""), 1);
  EXPECT_GT(written.tensors, 294'912u);
  expect_large_opens(folder.file(""), written);
  expect_large_opens(folder.file("model-00001-of-00001.safetensors"), written);
}

TEST(SafetensorsSize, ManyShards) {
  const TempDir folder;
  const LargeCheckpoint written = write_large_deepseek(folder.file(""));
  EXPECT_GT(written.bytes, 500'000'000'000u);
  expect_large_opens(folder.file(""), written);
}

}  // namespace
}  // namespace rowtide::checkpoint
