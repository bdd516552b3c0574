#include "io/file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>

#include "support/memory_disk.h"
#include "support/temp_dir.h"

namespace rowtide {
namespace {

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void expect_reads(const io::File& file) {
  ASSERT_EQ(file.bytes(), 10u);
  std::array<std::byte, 4> four;
  ASSERT_TRUE(file.read(3, four).ok());
  EXPECT_EQ(text_of(four), "3456");
  ASSERT_TRUE(file.read(6, four).ok());
  EXPECT_EQ(text_of(four), "6789");
  EXPECT_TRUE(file.read(10, {}).ok());
  for (const std::uint64_t offset : {std::uint64_t{7}, std::uint64_t{10}, std::uint64_t{11}, ~std::uint64_t{0}}) {
    expect_refused(file.read(offset, four), ErrorCode::kMalformed,
                   {file.path(), "offset " + std::to_string(offset), "10 bytes"});
  }
}

TEST(File, ReadsFromDiskAndMemoryAlike) {
  const TempDir dir;
  const std::string path = dir.file("ten");
  std::ofstream(path) << "0123456789";
  auto disk = io::open_file(path);
  ASSERT_TRUE(disk.ok()) << disk.error().message;
  EXPECT_EQ((*disk)->path(), path);
  expect_reads(**disk);

  std::vector<std::byte> content(10);
  std::memcpy(content.data(), "0123456789", 10);
  expect_reads(*io::memory_file("ten", content));
}

TEST(File, NoticesAFileThatShrank) {
  const TempDir dir;
  const std::string path = dir.file("ten");
  std::ofstream(path) << "0123456789";
  auto file = io::open_file(path);
  ASSERT_TRUE(file.ok());
  std::filesystem::resize_file(path, 5);
  std::array<std::byte, 4> four;
  expect_refused((*file)->read(3, four), ErrorCode::kMalformed, {path, "had 10 bytes", "ends at 5"});
}

TEST(File, SaysWhyItCannotBeOpened) {
  const TempDir dir;
  const std::string pipe = dir.file("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  expect_refused(io::open_file(dir.file("nothing")), ErrorCode::kNotFound, {dir.file("nothing")});
  expect_refused(io::open_file(dir.file("")), ErrorCode::kUnsupported, {dir.file(""), "directory"});
  expect_refused(io::open_file(pipe), ErrorCode::kUnsupported, {pipe, "pipe"});
  expect_refused(io::open_file("/dev/null"), ErrorCode::kUnsupported, {"/dev/null", "device"});
  const std::string loop = dir.file("loop");
  ASSERT_EQ(::symlink(loop.c_str(), loop.c_str()), 0);
  expect_refused(io::open_file(loop), ErrorCode::kIo, {loop, "errno"});
}

}  // namespace
}  // namespace rowtide
