#include <gtest/gtest.h>

#include "checkpoint/sample.h"

namespace rowtide {
namespace {

using checkpoint::Gguf;
using checkpoint::open_gguf;

std::string part_path(int number) { return fmt::format("dir/model-{:05}-of-00003.gguf", number); }

GgufWriter part_gguf(std::uint16_t number) {
  GgufWriter writer;
  if (number == 0) writer.set("general.architecture", "sample");
  writer.set<std::uint16_t>("split.no", number);
  writer.set<std::uint16_t>("split.count", 3);
  writer.set<std::int32_t>("split.tensors.count", 5);
  // The last part first by name, so that order of names and order of files differ.
  const std::string prefix(1, static_cast<char>('z' - number));
  writer.add_tensor(prefix + ".a", 0, {8}, 32);
  if (number != 1) writer.add_tensor(prefix + ".b", 8, {32, 3}, 102);
  return writer;
}

MemoryDisk split_disk() {
  MemoryDisk disk;
  for (std::uint16_t number = 0; number < 3; ++number) disk.add(part_path(number + 1), part_gguf(number).bytes());
  return disk;
}

void respoil(MemoryDisk& disk, std::uint16_t number, const std::function<void(GgufWriter&)>& spoil) {
  GgufWriter writer = part_gguf(number);
  spoil(writer);
  disk.add(part_path(number + 1), writer.bytes());
}

TEST(GgufSplit, OpensTheWholeSetFromAnyPart) {
  MemoryDisk disk = split_disk();
  for (int given = 1; given <= 3; ++given) {
    SCOPED_TRACE(given);
    auto set = open_gguf(part_path(given), disk.opener());
    ASSERT_TRUE(set.ok()) << set.error().message;
    ASSERT_EQ(set->files.size(), 3u);
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(set->files[i].path, part_path(i + 1));
      EXPECT_EQ(set->files[i].bytes, disk.content(part_path(i + 1)).size());
    }
    EXPECT_EQ(*set->metadata.text("general.architecture"), "sample");
    ASSERT_EQ(set->tensors.size(), 5u);
    for (const checkpoint::Tensor& tensor : set->tensors) {
      EXPECT_EQ(tensor.file, static_cast<std::uint32_t>('z' - tensor.name[0])) << tensor.name;
      EXPECT_EQ(set->find_tensor(tensor.name), &tensor);
    }
    const checkpoint::Tensor* b = set->find_tensor("x.b");
    EXPECT_EQ(b->offset, set->files[2].header_bytes + 32);
    EXPECT_EQ(set->path_of(*b), part_path(3));
  }
}

TEST(GgufSplit, NamesAMissingPart) {
  MemoryDisk disk = split_disk();
  disk.remove(part_path(2));
  expect_refused(open_gguf(part_path(3), disk.opener()), ErrorCode::kNotFound,
                 {part_path(2), "part 2 of 3", part_path(3)});
  expect_refused(open_gguf(part_path(2), disk.opener()), ErrorCode::kNotFound, {part_path(2)});
}

TEST(GgufSplit, NamesAForeignPart) {
  const std::vector<std::function<void(GgufWriter&)>> foreign = {
      [](GgufWriter& w) { w.set<std::uint16_t>("split.no", 2); },
      [](GgufWriter& w) { w.set<std::uint16_t>("split.count", 4); },
      [](GgufWriter& w) { w.set<std::int32_t>("split.tensors.count", 6); },
      [](GgufWriter& w) { w.pairs.clear(); },  // no part of any set
  };
  for (const auto& spoil : foreign) {
    MemoryDisk disk = split_disk();
    respoil(disk, 1, spoil);
    expect_refused(open_gguf(part_path(1), disk.opener()), ErrorCode::kMalformed,
                   {part_path(2), "another set", part_path(1), "part 2 of 3"});
  }
}

TEST(GgufSplit, RefusesDamagedParts) {
  MemoryDisk disk = split_disk();
  disk.add(part_path(3), disk.content(part_path(3)).substr(0, 300));
  expect_refused(open_gguf(part_path(1), disk.opener()), ErrorCode::kMalformed,
                 {part_path(3), "the file has 300 bytes"});
}

TEST(GgufSplit, RefusesTensorsInTwoParts) {
  MemoryDisk disk = split_disk();
  respoil(disk, 2, [](GgufWriter& w) { w.tensors[0].name = "z.b"; });
  expect_refused(open_gguf(part_path(1), disk.opener()), ErrorCode::kMalformed,
                 {"tensor 'z.b'", "occurs twice", part_path(1), part_path(3)});
}

TEST(GgufSplit, RefusesAWrongTotal) {
  MemoryDisk disk = split_disk();
  respoil(disk, 2, [](GgufWriter& w) { w.tensors.pop_back(); });
  expect_refused(open_gguf(part_path(1), disk.opener()), ErrorCode::kMalformed,
                 {part_path(1), "split.tensors.count", "5", "hold 4 tensors"});
}

TEST(GgufSplit, RefusesKeysThatContradictTheName) {
  MemoryDisk disk = split_disk();
  disk.add("dir/renamed.gguf", disk.content(part_path(2)));
  expect_refused(open_gguf("dir/renamed.gguf", disk.opener()), ErrorCode::kMalformed,
                 {"dir/renamed.gguf", "part 2 of 3", "-00002-of-00003.gguf"});
  respoil(disk, 1, [](GgufWriter& w) { w.set<std::uint16_t>("split.no", 3); });
  expect_refused(open_gguf(part_path(2), disk.opener()), ErrorCode::kMalformed, {part_path(2), "'split.no'", "3"});
  respoil(disk, 1, [](GgufWriter& w) { w.set("split.count", "three"); });
  expect_refused(open_gguf(part_path(2), disk.opener()), ErrorCode::kMalformed,
                 {part_path(2), "'split.count'", "a str"});
  respoil(disk, 1, [](GgufWriter& w) { w.erase("split.no"); });
  expect_refused(open_gguf(part_path(2), disk.opener()), ErrorCode::kMalformed,
                 {part_path(2), "'split.no'", "is missing"});
}

TEST(GgufSplit, ASetOfOneIsAFile) {
  GgufWriter writer = part_gguf(0);
  writer.set<std::uint16_t>("split.count", 1);
  auto gguf = open_bytes(writer.bytes());
  ASSERT_TRUE(gguf.ok()) << gguf.error().message;
  EXPECT_EQ(gguf->files.size(), 1u);
}

TEST(GgufSplit, LimitsTheTensorsOfAllPartsTogether) {
  MemoryDisk disk = split_disk();
  for (std::uint16_t number = 0; number < 3; ++number) {
    respoil(disk, number, [&](GgufWriter& w) {
      w.tensors.clear();
      for (int i = 0; i < 6000; ++i) w.add_tensor(fmt::format("{}.{}", number, i), 24, {0}, 0);
      w.set<std::int32_t>("split.tensors.count", 18000);
    });
  }
  expect_refused(open_gguf(part_path(1), disk.opener()), ErrorCode::kUnsupported,
                 {part_path(3), "18000 tensors", "16384"});
}

}  // namespace
}  // namespace rowtide
