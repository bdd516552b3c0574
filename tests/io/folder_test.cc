#include "io/folder.h"

#include <gtest/gtest.h>
#include <sys/fsuid.h>
#include <unistd.h>

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

/// Takes root's rights from this thread, as far as files go, while it lives.
class OrdinaryUser {
 public:
  OrdinaryUser() { set(is_root_ ? kNobody : ::geteuid()); }
  ~OrdinaryUser() { set(::geteuid()); }
  OrdinaryUser(const OrdinaryUser&) = delete;
  OrdinaryUser& operator=(const OrdinaryUser&) = delete;

 private:
  static constexpr uid_t kNobody = 65534;
  static void set(uid_t user) { ::setfsuid(user); }
  const bool is_root_ = ::geteuid() == 0;
};

/// Whoever may read a folder and not search it learns the names in it, and nothing else.
TEST(Folder, ThatMayNotBeSearched) {
  namespace fs = std::filesystem;
  const TempDir around;
  const std::string folder = around.file("folder");
  fs::create_directory(folder);
  std::ofstream(folder + "/a") << "x";
  fs::create_directory(around.file("free"));
  fs::create_symlink(folder + "/a", around.file("free/link"));
  fs::permissions(around.file(""), fs::perms::all);
  fs::permissions(folder, fs::perms{0444});
  {
    const OrdinaryUser user;
    expect_refused(list_folder(folder), ErrorCode::kIo, {folder, "cannot be listed", "Permission denied"});
    auto entries = list_folder(around.file("free"));
    ASSERT_TRUE(entries.ok()) << entries.error().message;
    ASSERT_EQ(entries->size(), 1u);  // there, though not where it leads
    EXPECT_FALSE(entries->front().is_folder);
    expect_refused(open_file(around.file("free/link")), ErrorCode::kIo, {"Permission denied"});
  }
  fs::permissions(folder, fs::perms{0755});
  const OrdinaryUser user;
  EXPECT_TRUE(list_folder(folder).ok());
}

TEST(Folder, ThatIsNone) {
  const TempDir folder;
  std::ofstream(folder.file("a")) << "x";
  expect_refused(list_folder(folder.file("absent")), ErrorCode::kNotFound, {"absent", "cannot be listed"});
  expect_refused(list_folder(folder.file("a")), ErrorCode::kUnsupported, {"/a", "cannot be listed"});
}

}  // namespace
}  // namespace rowtide::io
