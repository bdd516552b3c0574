// A memory cgroup of this machine, for what only the kernel itself can show.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>

#include "io/mounts.h"

namespace rowtide {

/// Runs `body` in a child process and gives back the number that it returns.
inline std::uint64_t in_child(const std::function<std::uint64_t()>& body) {
  int ends[2];
  if (::pipe(ends) != 0) throw std::runtime_error("no pipe");
  const pid_t child = ::fork();
  if (child == 0) {
    const std::uint64_t number = body();
    ::_exit(::write(ends[1], &number, sizeof(number)) == sizeof(number) ? 0 : 1);
  }
  ::close(ends[1]);
  std::uint64_t number = 0;
  EXPECT_EQ(::read(ends[0], &number, sizeof(number)), static_cast<ssize_t>(sizeof(number)));
  ::close(ends[0]);
  ::waitpid(child, nullptr, 0);
  return number;
}

inline bool lies_in_memory(const std::string& path) {
  struct statfs about{};
  return ::statfs(path.c_str(), &about) == 0 && (about.f_type == TMPFS_MAGIC || about.f_type == RAMFS_MAGIC);
}

/// A group with a limit, right below a mount of the memory controller: only those who join are in it. `folder()` is
/// empty where none can be made.
class RealCgroup {
 public:
  explicit RealCgroup(std::uint64_t limit_bytes) {
    for (const io::Mount& mount : io::mounts()) {
      const bool version_2 = mount.type == "cgroup2";
      if (!version_2 && !(mount.type == "cgroup" && io::lists(mount.options, "memory"))) continue;
      folder_ = mount.point + "/rowtide-test-" + std::to_string(::getpid());
      if (::mkdir(folder_.c_str(), 0755) != 0) continue;
      if (write(version_2 ? "memory.max" : "memory.limit_in_bytes", limit_bytes)) return;
      ::rmdir(folder_.c_str());
    }
    folder_.clear();
  }
  ~RealCgroup() {
    if (!folder_.empty()) ::rmdir(folder_.c_str());
  }
  RealCgroup(const RealCgroup&) = delete;
  RealCgroup& operator=(const RealCgroup&) = delete;

  const std::string& folder() const { return folder_; }
  /// Moves this process into the group, for good: for children.
  bool join() const { return write("cgroup.procs", static_cast<std::uint64_t>(::getpid())); }

  static constexpr const char* kNone = "no memory cgroup can be made here: that takes root and a memory controller";

 private:
  bool write(const std::string& name, std::uint64_t number) const {
    const std::string text = std::to_string(number);
    const int descriptor = ::open((folder_ + "/" + name).c_str(), O_WRONLY | O_CLOEXEC);
    const bool done = ::write(descriptor, text.data(), text.size()) == static_cast<ssize_t>(text.size());
    ::close(descriptor);
    return done;
  }

  std::string folder_;
};

}  // namespace rowtide
