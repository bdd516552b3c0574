#include "cli/doctor/limited_run.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>

#include "base/error.h"
#include "cli/failure.h"

namespace rowtide::cli::doctor {
namespace {

constexpr std::size_t kOutputBytesMax = std::size_t{64} << 10;
constexpr int kPollMs = 10;
constexpr int kNotStarted = 127;

Failure start_failure(const std::string& path) {
  return {kExitFailed, "resource", fmt::format("{} cannot be started: {}", path, errno_text(errno))};
}

std::vector<char*> pointers(const std::vector<std::string>& words) {
  std::vector<char*> list;
  for (const std::string& word : words) list.push_back(const_cast<char*>(word.c_str()));
  list.push_back(nullptr);
  return list;
}

/// After fork(): system calls alone.
[[noreturn]] void become(const char* path, char* const* arguments, char* const* environment, int output, pid_t parent) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(kNotStarted);
  const int nothing = ::open("/dev/null", O_RDONLY);
  if (nothing < 0) ::_exit(kNotStarted);
  ::dup2(nothing, STDIN_FILENO);
  ::dup2(output, STDOUT_FILENO);
  ::dup2(output, STDERR_FILENO);
  ::execve(path, arguments, environment);
  ::_exit(kNotStarted);
}

class Child {
 public:
  Child(const std::string& path, const std::vector<std::string>& arguments,
        const std::vector<std::string>& environment) {
    const auto argument_list = pointers(arguments), environment_list = pointers(environment);
    std::array<int, 2> pipe{};
    if (::pipe2(pipe.data(), O_CLOEXEC) != 0) throw start_failure(path);
    const pid_t parent = ::getpid();
    pid_ = ::fork();
    if (pid_ == 0) become(path.c_str(), argument_list.data(), environment_list.data(), pipe[1], parent);
    const int failure = errno;
    ::close(pipe[1]);
    output_ = pipe[0];
    ::fcntl(output_, F_SETFL, O_NONBLOCK);
    if (pid_ > 0) ::setpgid(pid_, pid_);  // here too, so that it is done whoever comes first
    errno = failure;
    if (pid_ < 0) {
      ::close(output_);
      throw start_failure(path);
    }
  }
  ~Child() {
    ::kill(-pid_, SIGKILL);
    while (!ended_ && ::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) continue;
    ::close(output_);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  pid_t pid() const { return pid_; }
  bool has_ended(int& status) {
    ended_ = ::waitpid(pid_, &status, WNOHANG) == pid_;
    return ended_;
  }

  /// Takes what has been printed, for at most `wait_ms` if nothing has.
  void drain(std::string& text, int wait_ms) const {
    pollfd printed{output_, POLLIN, 0};
    ::poll(&printed, 1, wait_ms);
    if (wait_ms > 0 && (printed.revents & POLLIN) == 0 && printed.revents != 0) ::poll(nullptr, 0, wait_ms);
    std::array<char, 4096> piece;
    for (int pieces = 0; pieces < 256; ++pieces) {  // a program that prints without end is still watched
      const ssize_t got = ::read(output_, piece.data(), piece.size());
      if (got <= 0) break;
      text.append(piece.data(), std::min<std::size_t>(static_cast<std::size_t>(got), kOutputBytesMax - text.size()));
    }
  }

 private:
  pid_t pid_ = -1;
  int output_ = -1;
  bool ended_ = false;
};

}  // namespace

bool LimitedRun::succeeded() const { return end == End::kExited && WIFEXITED(status) && WEXITSTATUS(status) == 0; }

std::string LimitedRun::status_text() const {
  if (WIFSIGNALED(status)) return fmt::format("was killed by signal {}", WTERMSIG(status));
  return fmt::format("ended with code {}", WEXITSTATUS(status));
}

LimitedRun run_limited(const std::string& path, std::vector<std::string> arguments,
                       const std::vector<std::string>& environment, std::chrono::milliseconds limit,
                       const std::function<bool(pid_t)>& far_enough) {
  arguments.insert(arguments.begin(), path);
  const auto start = std::chrono::steady_clock::now();
  LimitedRun run;
  Child child(path, arguments, environment);
  while (true) {
    child.drain(run.output, kPollMs);
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
  child.drain(run.output, 0);
  return run;
}

}  // namespace rowtide::cli::doctor
