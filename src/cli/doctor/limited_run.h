// Another program, run for a limited time: it may hang, crash, or print without end.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <string>
#include <vector>

namespace rowtide::cli::doctor {

struct LimitedRun {
  enum class End {
    kExited,   // by itself, or killed by a signal that was not ours
    kStopped,  // it had gone far enough
    kTimeOut,
  };
  End end = End::kExited;
  int status = 0;      // of kExited, as waitpid() gives it
  std::string output;  // standard output and error, what came first of it

  bool succeeded() const;
  /// "ended with code 1", "was killed by signal 11".
  std::string status_text() const;
};

/// Runs the program at `path` with nothing on its standard input and `environment` ("NAME=value"), in a process group
/// that is killed in the end, whatever it has started. `far_enough` is asked every few milliseconds, for a process that
/// is to be stopped before it ends by itself; may be empty. The process goes too when this one is killed. Throws a
/// Failure where no process can be started.
LimitedRun run_limited(const std::string& path, std::vector<std::string> arguments,
                       const std::vector<std::string>& environment, std::chrono::milliseconds limit,
                       const std::function<bool(pid_t)>& far_enough = {});

}  // namespace rowtide::cli::doctor
