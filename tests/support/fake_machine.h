// A tree of files that stands for /proc and /sys of another machine.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "support/temp_dir.h"

namespace rowtide {

class FakeMachine {
 public:
  /// What code takes as the root that stands before /proc and /sys.
  std::string root() const { return dir_.file("root"); }

  /// Writes (again) a file of the machine: put("/proc/meminfo", "MemTotal: 1 kB\n").
  void put(std::string_view path, std::string_view content) const {
    const std::filesystem::path place = root() + std::string(path);
    std::filesystem::create_directories(place.parent_path());
    std::ofstream(place, std::ios::binary) << content;
  }

 private:
  TempDir dir_;
};

}  // namespace rowtide
