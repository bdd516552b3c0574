#include "cli/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <utility>

namespace rowtide::cli {

Progress::Progress(std::string what) : what_(std::move(what)), on_terminal_(isatty(STDERR_FILENO) == 1) {}

Progress::~Progress() {
  constexpr const char* kClearLine = "\r\033[K";
  if (shown_) std::fputs(kClearLine, stderr);
}

void Progress::update(double share) {
  if (!on_terminal_ || std::chrono::steady_clock::now() - start_ < std::chrono::seconds(1)) return;
  constexpr int kWidth = 40;
  std::string bar(static_cast<std::size_t>(share * kWidth), '#');
  std::fputs(fmt::format("\r{} [{:<{}}] {:3.0f} %", what_, bar, kWidth, share * 100).c_str(), stderr);
  shown_ = true;
}

}  // namespace rowtide::cli
