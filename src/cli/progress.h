// A progress bar on standard error, for what takes longer than a second and is watched by a person.
#pragma once

#include <chrono>
#include <string>

namespace rowtide::cli {

class Progress {
 public:
  explicit Progress(std::string what);
  ~Progress();  // takes the bar off the screen
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// `share` of the work is done, 0 to 1. Shows nothing in the first second, nor where standard error is no terminal.
  void update(double share);

 private:
  std::string what_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  bool on_terminal_;
  bool shown_ = false;
};

}  // namespace rowtide::cli
