#include "cli/stop_signals.h"

#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "base/error.h"
#include "cli/failure.h"

namespace rowtide::cli {
namespace {

sigset_t stopping() {
  sigset_t signals;
  ::sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::sigaddset(&signals, signal);
  return signals;
}

}  // namespace

StopSignals::StopSignals() {
  const sigset_t signals = stopping();
  ::sigprocmask(SIG_BLOCK, &signals, nullptr);
  descriptor_ = ui::Descriptor(::signalfd(-1, &signals, SFD_NONBLOCK | SFD_CLOEXEC));
  if (descriptor_.number() < 0) {
    throw Failure(kExitFailed, "resource", fmt::format("signals cannot be waited for: {}", errno_text(errno)));
  }
}

StopSignals::~StopSignals() {
  const sigset_t signals = stopping();
  while (take() != 0) continue;  // those that have been heard are not to end this program now
  ::sigprocmask(SIG_UNBLOCK, &signals, nullptr);
}

int StopSignals::take() const {
  signalfd_siginfo info{};
  return ::read(descriptor_.number(), &info, sizeof info) == sizeof info ? static_cast<int>(info.ssi_signo) : 0;
}

}  // namespace rowtide::cli
