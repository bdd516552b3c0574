// How many system calls something makes: it runs in a traced child process.
#pragma once

#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstddef>
#include <functional>
#include <optional>

namespace rowtide {

/// Those of the calling thread while it runs what `prepare` gives back, which says whether it worked; `prepare` itself
/// is not counted. Nothing where it fails, or where the machine lets nobody trace.
inline std::optional<std::size_t> system_calls_of(const std::function<std::function<bool()>()>& prepare) {
  const pid_t child = ::fork();
  if (child == 0) {
    const auto counted = prepare();
    if (!counted || ::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) ::_exit(1);
    ::raise(SIGSTOP);
    const bool right = counted();
    ::_exit(right ? 0 : 1);
  }
  int status = 0;
  if (child < 0 || ::waitpid(child, &status, 0) != child || !WIFSTOPPED(status)) return std::nullopt;
  ::ptrace(PTRACE_SETOPTIONS, child, nullptr, PTRACE_O_TRACESYSGOOD);
  std::size_t calls = 0;
  long signal = 0;  // the child's own, handed on
  while (true) {
    ::ptrace(PTRACE_SYSCALL, child, nullptr, signal);
    if (::waitpid(child, &status, 0) != child) return std::nullopt;
    if (WIFEXITED(status)) break;
    if (WIFSIGNALED(status)) return std::nullopt;
    signal = 0;
    if (WSTOPSIG(status) != (SIGTRAP | 0x80)) {
      signal = WSTOPSIG(status);
      continue;
    }
    __ptrace_syscall_info info{};
    ::ptrace(PTRACE_GET_SYSCALL_INFO, child, sizeof info, &info);
    if (info.op == PTRACE_SYSCALL_INFO_ENTRY) ++calls;
  }
  if (WEXITSTATUS(status) != 0) return std::nullopt;
  return calls;
}

}  // namespace rowtide
