// Another program, started and watched by this one.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace rowtide::cli {

/// "ended with code 1", "was killed by signal 11", of a status as waitpid() gives it.
std::string exit_text(int status);

/// Runs the program at `path` with nothing on its standard input, in a process group of its own that is killed in the
/// end, whatever it has started. It goes too when this process is killed.
class ChildProcess {
 public:
  /// `environment` is the whole of it ("NAME=value"). Throws a Failure where no process can be started; a program that
  /// cannot be run ends with code 127.
  ChildProcess(const std::string& path, std::vector<std::string> arguments,
               const std::vector<std::string>& environment);
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  pid_t pid() const { return pid_; }
  int output_descriptor() const { return output_; }  // can be polled

  /// Whether it has ended; `status` is then set, at every call.
  bool has_ended(int& status);

  /// Appends what it has printed on standard output and error, at most 1 MiB at a call; waits `wait_ms` at most where
  /// it has printed nothing.
  void take_output(std::string& text, int wait_ms) const;

  void send_signal(int signal) const;  // to it alone
  void kill_group() const;

 private:
  pid_t pid_ = -1;
  int output_ = -1;
  bool ended_ = false;
  int status_ = 0;
};

}  // namespace rowtide::cli
