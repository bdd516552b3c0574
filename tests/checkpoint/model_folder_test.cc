// Checkpoints in the cache of a hub's client: several snapshots, some of them fetched in part.
#include "checkpoint/model_folder.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>

#include "checkpoint/safetensors.h"
#include "support/memory_disk.h"
#include "support/safetensors_writer.h"
#include "support/temp_dir.h"

namespace rowtide::checkpoint {
namespace {

const std::string kRepository = "hub/models--org--name";

std::string shard(const std::string& tensor) {
  SafetensorsWriter writer;
  writer.add(tensor, "U8", {1}, "1");
  return writer.bytes();
}

/// A snapshot of two shards, of which the second may be missing.
void add_snapshot(MemoryDisk& disk, const std::string& commit, std::int64_t modified_ns, bool is_complete) {
  const std::string folder = kRepository + "/snapshots/" + commit;
  disk.add(folder + "/config.json", "{}");
  disk.add(folder + "/model.safetensors.index.json", safetensors_index({{"a", "s-1"}, {"b", "s-2"}}));
  disk.add(folder + "/s-1", shard("a"));
  if (is_complete) disk.add(folder + "/s-2", shard("b"));
  disk.set_modified(folder, modified_ns);
}

void expect_opens(MemoryDisk& disk, const std::string& commit, const std::string& choice) {
  auto opened = open_safetensors(kRepository, disk.disk());
  ASSERT_TRUE(opened.ok()) << opened.error().message;
  EXPECT_EQ(opened->files()[0].path, kRepository + "/snapshots/" + commit + "/s-1");
  EXPECT_EQ(opened->config_path(), kRepository + "/snapshots/" + commit + "/config.json");
  EXPECT_EQ(opened->choice(), choice);
}

TEST(ModelFolder, OneSnapshotIsNoChoice) {
  MemoryDisk disk;
  add_snapshot(disk, "c1", 1, true);
  expect_opens(disk, "c1", "");
  disk.add(kRepository + "/refs/main", "c1\n");
  expect_opens(disk, "c1", "");
  disk.add(kRepository + "/refs/main", "c0");
  expect_opens(disk, "c1",
               "snapshot c1 of 1 is open: the newest that is complete; refs/main names c0, which is not here");
}

TEST(ModelFolder, TheSnapshotOfTheMainBranchComesFirst) {
  MemoryDisk disk;
  add_snapshot(disk, "c1", 1, true);
  add_snapshot(disk, "c2", 3, true);
  add_snapshot(disk, "c3", 2, true);
  disk.add(kRepository + "/refs/main", "c1");
  disk.add(kRepository + "/refs/other", "c2");
  expect_opens(disk, "c1", "snapshot c1 of 3 is open: refs/main names it");
}

TEST(ModelFolder, ThenTheNewestThatIsComplete) {
  MemoryDisk disk;
  add_snapshot(disk, "c1", 1, true);
  add_snapshot(disk, "c2", 3, true);
  add_snapshot(disk, "c3", 2, true);
  expect_opens(disk, "c2", "snapshot c2 of 3 is open: the newest that is complete");
  add_snapshot(disk, "c4", 9, false);
  add_snapshot(disk, "c0", 0, false);
  disk.add(kRepository + "/refs/main", "c0");
  const std::string snapshots = kRepository + "/snapshots/";
  expect_opens(disk, "c2",
               "snapshot c2 of 5 is open: the newest that is complete; refs/main names " + snapshots +
                   "c0: lacks s-2, yet to be fetched (of 2 files that model.safetensors.index.json names); " +
                   snapshots + "c4: lacks s-2, yet to be fetched (of 2 files that model.safetensors.index.json names)");
}

TEST(ModelFolder, ThenOneThatLacksOnlyItsConfig) {
  MemoryDisk disk;
  const std::string snapshots = kRepository + "/snapshots/";
  add_snapshot(disk, "c1", 1, true);
  add_snapshot(disk, "c2", 2, true);
  disk.remove(snapshots + "c2/config.json");
  expect_opens(disk, "c1",
               "snapshot c1 of 2 is open: the newest that is complete; " + snapshots + "c2: lacks config.json");
  disk.add(kRepository + "/refs/main", "c2");
  expect_opens(
      disk, "c1",
      "snapshot c1 of 2 is open: the newest that is complete; refs/main names " + snapshots + "c2: lacks config.json");
  disk.remove(snapshots + "c1/config.json");
  auto opened = open_safetensors(kRepository, disk.disk());
  ASSERT_TRUE(opened.ok()) << opened.error().message;
  EXPECT_EQ(opened->files()[0].path, snapshots + "c2/s-1");
  EXPECT_EQ(opened->config_path(), "");
  EXPECT_EQ(opened->choice(),
            "snapshot c2 of 2 is open: none is complete, and it holds all its safetensors files; refs/main names " +
                snapshots + "c2: lacks config.json; " + snapshots + "c1: lacks config.json");
}

TEST(ModelFolder, AModelsFolderMayHoldSnapshotsOfItsOwn) {
  for (const char* own : {"m/own.safetensors", "m/model.safetensors.index.json"}) {
    MemoryDisk disk;
    disk.add("m/snapshots/c1/model.safetensors", shard("a"));
    auto opened = open_safetensors("m", disk.disk());
    ASSERT_TRUE(opened.ok()) << opened.error().message;
    disk.add("m/._own.safetensors", "");
    ASSERT_TRUE(open_safetensors("m", disk.disk()).ok());
    disk.add("m/s-1", shard("b"));
    disk.add(own, std::string(own).ends_with("json") ? safetensors_index({{"b", "s-1"}}) : shard("b"));
    opened = open_safetensors("m", disk.disk());
    ASSERT_TRUE(opened.ok()) << opened.error().message;
    EXPECT_TRUE(opened->tensors().find("b"));
  }
}

TEST(ModelFolder, NoSnapshotThatIsComplete) {
  MemoryDisk disk;
  add_snapshot(disk, "c1", 1, false);
  disk.add(kRepository + "/snapshots/c2/config.json", "{}");
  expect_refused(open_safetensors(kRepository, disk.disk()), ErrorCode::kNotFound,
                 {kRepository + ": holds no complete snapshot", "c1: lacks s-2", "c2: holds no *.safetensors file"});
  expect_refused(open_safetensors(kRepository + "/snapshots/c1", disk.disk()), ErrorCode::kNotFound,
                 {"c1: lacks s-2, yet to be fetched"});
  expect_refused(open_safetensors(kRepository + "/snapshots/c1/model.safetensors.index.json", disk.disk()),
                 ErrorCode::kNotFound, {"c1: lacks s-2, yet to be fetched"});
}

/// As such a cache lies on a disk: files are links into blobs/, and one of a part that was never fetched leads nowhere.
TEST(ModelFolder, LinksIntoBlobs) {
  namespace fs = std::filesystem;
  const TempDir folder;
  const fs::path repository = folder.file("models--org--name");
  const fs::path snapshot = repository / "snapshots" / "c1";
  fs::create_directories(snapshot);
  fs::create_directories(repository / "blobs");
  std::ofstream(repository / "blobs" / "0a") << safetensors_index({{"a", "s-1"}, {"b", "s-2"}});
  std::ofstream(repository / "blobs" / "0b") << shard("a");
  fs::create_symlink("../../blobs/0a", snapshot / "model.safetensors.index.json");
  fs::create_symlink("../../blobs/0b", snapshot / "s-1");
  fs::create_symlink("../../blobs/0c", snapshot / "s-2");
  fs::create_symlink("../../blobs/0d", snapshot / "config.json");
  expect_refused(open_safetensors(repository, io::Disk{}), ErrorCode::kNotFound, {"c1: lacks s-2"});
  std::ofstream(repository / "blobs" / "0c") << shard("b");
  for (const fs::path& path : {repository, snapshot, snapshot / "model.safetensors.index.json"}) {
    auto opened = open_safetensors(path, io::Disk{});
    ASSERT_TRUE(opened.ok()) << opened.error().message;
    EXPECT_EQ(opened->tensors().size(), 2u);
    EXPECT_EQ(opened->files()[1].path, (snapshot / "s-2").string());
  }
  fs::create_directories(repository / "snapshots" / "c0");
  for (const char* name : {"model.safetensors", "config.json"}) {
    std::ofstream(repository / "snapshots" / "c0" / name) << (name[0] == 'm' ? shard("a") : "{}");
  }
  fs::last_write_time(repository / "snapshots" / "c0", fs::last_write_time(snapshot) - std::chrono::hours(1));
  auto complete = open_safetensors(repository, io::Disk{});
  ASSERT_TRUE(complete.ok()) << complete.error().message;
  EXPECT_EQ(complete->files()[0].path, (repository / "snapshots" / "c0" / "model.safetensors").string());
  EXPECT_EQ(complete->choice(),
            "snapshot c0 of 2 is open: the newest that is complete; " + snapshot.string() + ": lacks config.json");
  auto blob = open_safetensors(repository / "blobs" / "0c", io::Disk{});
  ASSERT_TRUE(blob.ok()) << blob.error().message;
  EXPECT_EQ(blob->tensors().size(), 1u);
}

}  // namespace
}  // namespace rowtide::checkpoint
