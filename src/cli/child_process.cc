#include "cli/child_process.h"

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

namespace rowtide::cli {
namespace {

constexpr int kNotStarted = 127;
constexpr int kPiecesMost = 256;  // a program that prints without end is still watched

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
  // What this program holds back for itself is the other's to take.
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  const int nothing = ::open("/dev/null", O_RDONLY);
  if (nothing < 0) ::_exit(kNotStarted);
  ::dup2(nothing, STDIN_FILENO);
  ::dup2(output, STDOUT_FILENO);
  ::dup2(output, STDERR_FILENO);
  ::execve(path, arguments, environment);
  ::_exit(kNotStarted);
}

}  // namespace

std::string exit_text(int status) {
  if (WIFSIGNALED(status)) return fmt::format("was killed by signal {}", WTERMSIG(status));
  return fmt::format("ended with code {}", WEXITSTATUS(status));
}

ChildProcess::ChildProcess(const std::string& path, std::vector<std::string> arguments,
                           const std::vector<std::string>& environment) {
  arguments.insert(arguments.begin(), path);
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

ChildProcess::~ChildProcess() {
  kill_group();
  while (!ended_ && ::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) continue;
  ::close(output_);
}

bool ChildProcess::has_ended(int& status) {
  if (!ended_) ended_ = ::waitpid(pid_, &status_, WNOHANG) == pid_;
  if (ended_) status = status_;
  return ended_;
}

void ChildProcess::take_output(std::string& text, int wait_ms) const {
  pollfd printed{output_, POLLIN, 0};
  ::poll(&printed, 1, wait_ms);
  if (wait_ms > 0 && (printed.revents & POLLIN) == 0 && printed.revents != 0) ::poll(nullptr, 0, wait_ms);
  std::array<char, 4096> piece;
  for (int pieces = 0; pieces < kPiecesMost; ++pieces) {
    const ssize_t got = ::read(output_, piece.data(), piece.size());
    if (got <= 0) break;
    text.append(piece.data(), static_cast<std::size_t>(got));
  }
}

void ChildProcess::send_signal(int signal) const {
  if (!ended_) ::kill(pid_, signal);
}

void ChildProcess::kill_group() const { ::kill(-pid_, SIGKILL); }

}  // namespace rowtide::cli
