// What is mounted where, as this process sees it (/proc/self/mountinfo, proc(5)).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rowtide::io {

struct Mount {
  std::string device;   // "major:minor", decimal
  std::string subtree;  // the folder of the file system that is shown: "/" for all of it
  std::string point;    // where it is shown
  std::string type;     // "ext4", "cgroup2"
  std::string options;  // of the file system, with commas between
};

/// None where the kernel does not say. `root` stands before /proc, and is not added to what is returned.
std::vector<Mount> mounts(const std::string& root = "");

/// The mount that `path`, absolute and without symbolic links, lies on; nothing where the kernel does not say.
std::optional<Mount> mount_of(std::string_view path, const std::string& root = "");

/// Whether `word` is one of the words of `list`, which commas divide.
bool lists(std::string_view list, std::string_view word);

}  // namespace rowtide::io
