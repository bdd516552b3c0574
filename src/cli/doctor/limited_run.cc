#include "cli/doctor/limited_run.h"

#include <sys/wait.h>

#include <utility>

#include "cli/child_process.h"

namespace rowtide::cli::doctor {
namespace {

constexpr std::size_t kOutputBytesMax = std::size_t{64} << 10;
constexpr int kPollMs = 10;

/// What came first of the output is kept.
void take(const ChildProcess& child, std::string& kept, int wait_ms) {
  std::string piece;
  child.take_output(piece, wait_ms);
  kept.append(piece, 0, kOutputBytesMax - kept.size());
}

}  // namespace

bool LimitedRun::succeeded() const { return end == End::kExited && WIFEXITED(status) && WEXITSTATUS(status) == 0; }

std::string LimitedRun::status_text() const { return exit_text(status); }

LimitedRun run_limited(const std::string& path, std::vector<std::string> arguments,
                       const std::vector<std::string>& environment, std::chrono::milliseconds limit,
                       const std::function<bool(pid_t)>& far_enough) {
  const auto start = std::chrono::steady_clock::now();
  LimitedRun run;
  ChildProcess child(path, std::move(arguments), environment);
  while (true) {
    take(child, run.output, kPollMs);
    if (child.has_ended(run.status)) break;
    if (far_enough && far_enough(child.pid())) {
      run.end = LimitedRun::End::kStopped;
      break;
    }
    if (std::chrono::steady_clock::now() - start > limit) {
      run.end = LimitedRun::End::kTimeOut;
      break;
    }
  }
  take(child, run.output, 0);
  return run;
}

}  // namespace rowtide::cli::doctor
