// Which mount a path lies on.
#include "io/mounts.h"

#include <gtest/gtest.h>

#include "support/fake_machine.h"

namespace rowtide::io {
namespace {

TEST(Mounts, TheNearestAboveThePath) {
  const FakeMachine machine;
  machine.put("/proc/self/mountinfo",
              "27 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n"
              "28 27 0:40 / /models rw shared:1 - nfs4 server:/models rw\n"
              "29 28 259:1 / /models/fast\\040one rw - xfs /dev/nvme0n1p1 rw\n");
  const auto type_at = [&](std::string_view path) { return mount_of(path, machine.root())->type; };
  EXPECT_EQ(type_at("/"), "ext4");
  EXPECT_EQ(type_at("/modelsuite/m.gguf"), "ext4");
  EXPECT_EQ(type_at("/models"), "nfs4");
  EXPECT_EQ(type_at("/models/m.gguf"), "nfs4");
  EXPECT_EQ(type_at("/models/fast one/m.gguf"), "xfs");
}

TEST(Mounts, ALaterOneHidesThoseBelow) {
  const FakeMachine machine;
  machine.put("/proc/self/mountinfo",
              "25 24 0:23 / /dev/shm rw - tmpfs tmpfs rw\n"
              "30 25 0:27 / /dev/shm rw - ramfs ramfs rw\n");
  EXPECT_EQ(mount_of("/dev/shm/file", machine.root())->type, "ramfs");
  EXPECT_FALSE(mount_of("/home", machine.root()));
  EXPECT_FALSE(mount_of("/", FakeMachine().root()));
}

TEST(Mounts, OfThisMachine) {
  ASSERT_TRUE(mount_of("/proc/self"));
  EXPECT_EQ(mount_of("/proc/self")->type, "proc");
}

}  // namespace
}  // namespace rowtide::io
