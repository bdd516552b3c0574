#include "io/folder.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "support/memory_disk.h"
#include "support/temp_dir.h"

namespace rowtide::io {
namespace {

TEST(Folder, IsListedByNameWithLinksFollowed) {
  namespace fs = std::filesystem;
  const TempDir folder;
  fs::create_directory(folder.file("b"));
  std::ofstream(folder.file("a")) << "x";
  fs::create_symlink("a", folder.file("link"));
  fs::create_symlink("b", folder.file("link to b"));
  fs::create_symlink("nowhere", folder.file("broken"));
  fs::last_write_time(folder.file("a"), fs::file_time_type::clock::now() - std::chrono::hours(1));

  auto entries = list_folder(folder.file(""));
  ASSERT_TRUE(entries.ok()) << entries.error().message;
  std::string told;
  for (const FolderEntry& entry : *entries) told += entry.name + (entry.is_folder ? "/ " : " ");
  EXPECT_EQ(told, "a b/ link link to b/ ");
  EXPECT_LT((*entries)[0].modified_ns, (*entries)[1].modified_ns - 3'500'000'000'000);
  EXPECT_EQ((*entries)[0].modified_ns, (*entries)[2].modified_ns);
}

TEST(Folder, ThatIsNone) {
  const TempDir folder;
  std::ofstream(folder.file("a")) << "x";
  expect_refused(list_folder(folder.file("absent")), ErrorCode::kNotFound, {"absent", "cannot be listed"});
  expect_refused(list_folder(folder.file("a")), ErrorCode::kUnsupported, {"/a", "cannot be listed"});
}

}  // namespace
}  // namespace rowtide::io
