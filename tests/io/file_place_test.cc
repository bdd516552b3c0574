// From an address to the place in the file: right, or not at all.
#include "rowtide/file_place.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "support/random_table.h"

namespace rowtide {
namespace {

const auto kPage = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
constexpr std::size_t kPages = 16;

/// A file mapped whole for as long as this lives.
class Mapped {
 public:
  Mapped(const std::string& path, int protection, int flags) {
    const int descriptor = ::open(path.c_str(), O_RDONLY);
    memory_ = ::mmap(nullptr, kPages * kPage, protection, flags, descriptor, 0);
    ::close(descriptor);
    EXPECT_NE(memory_, MAP_FAILED);
  }
  ~Mapped() { ::munmap(memory_, kPages * kPage); }
  Mapped(const Mapped&) = delete;
  Mapped& operator=(const Mapped&) = delete;
  char* at(std::size_t offset) const { return static_cast<char*>(memory_) + offset; }

 private:
  void* memory_;
};

class FilePlaceOf : public testing::Test {
 protected:
  std::string make(const std::string& name) {
    const std::string path = dir_.file(name);
    write_file(path, std::vector<std::byte>(kPages * kPage));
    return path;
  }
  TempDir dir_;
};

TEST_F(FilePlaceOf, FindsPathAndOffset) {
  for (const char* name : {"plain", "a name with spaces", "two\nlines", "(deleted)"}) {
    const std::string path = make(name);
    const Mapped mapped(path, PROT_READ, MAP_SHARED);
    const auto place = find_file_place(mapped.at(1234), 5 * kPage);
    ASSERT_TRUE(place.ok()) << place.error().message;
    EXPECT_EQ(place->path, std::filesystem::canonical(path));
    EXPECT_EQ(place->offset, 1234u);
    EXPECT_TRUE(is_still_there(*place));
  }
}

TEST_F(FilePlaceOf, AdviceOnAPartOfTheMappingMakesNoDifference) {
  const Mapped mapped(make("file"), PROT_READ, MAP_SHARED);
  ASSERT_EQ(::madvise(mapped.at(4 * kPage), 4 * kPage, MADV_RANDOM), 0);
  const auto place = find_file_place(mapped.at(2 * kPage), 12 * kPage);
  ASSERT_TRUE(place.ok()) << place.error().message;
  EXPECT_EQ(place->offset, 2 * kPage);
}

TEST_F(FilePlaceOf, RefusesWhatIsNoStretchOfAFile) {
  std::vector<char> heap(kPage);
  EXPECT_FALSE(find_file_place(heap.data(), heap.size()).ok());
  const Mapped written(make("written"), PROT_READ | PROT_WRITE, MAP_PRIVATE);
  EXPECT_FALSE(find_file_place(written.at(0), kPage).ok());
  const Mapped holed(make("holed"), PROT_READ, MAP_SHARED);
  ASSERT_EQ(::munmap(holed.at(4 * kPage), kPage), 0);
  EXPECT_FALSE(find_file_place(holed.at(0), 8 * kPage).ok());
  EXPECT_TRUE(find_file_place(holed.at(0), 4 * kPage).ok());
}

// A model that is replaced and loaded again while the old one is in use: two files of one path.
TEST_F(FilePlaceOf, TellsAFileFromTheOneThatReplacedIt) {
  const std::string path = make("model");
  const Mapped old(path, PROT_READ, MAP_SHARED);
  const auto before = find_file_place(old.at(0), kPage);
  ASSERT_TRUE(before.ok());

  std::filesystem::rename(make("new"), path);
  EXPECT_FALSE(is_still_there(*before));
  const auto replaced = find_file_place(old.at(0), kPage);
  ASSERT_FALSE(replaced.ok());
  EXPECT_NE(replaced.error().message.find("replaced"), std::string::npos) << replaced.error().message;

  const Mapped fresh(path, PROT_READ, MAP_SHARED);
  const auto after = find_file_place(fresh.at(0), kPage);
  ASSERT_TRUE(after.ok());
  EXPECT_EQ(after->path, before->path);
  EXPECT_EQ(after->offset, before->offset);
  EXPECT_NE(after->inode, before->inode);
}

}  // namespace
}  // namespace rowtide
