#include "cli/serve/served.h"

#include <fmt/format.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <optional>

#include "base/printable.h"
#include "cli/child_process.h"

extern char** environ;

namespace rowtide::cli::serve {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr int kPollMs = 50;
constexpr milliseconds kHealthLimit{500};
constexpr seconds kGrace{10};   // to end by itself
constexpr seconds kNotice{30};  // between two lines that it is still starting
constexpr std::size_t kTailBytes = std::size_t{16} << 10;
constexpr std::size_t kTailLines = 4;  // that an error shows
constexpr int kCannotRun = 127;

/// This process's variables, with those of the command in the stead of any of the same name.
std::vector<std::string> environment_of(const ServerCommand& command) {
  // What the plan does not set must not come from elsewhere: two of them can contradict each other.
  std::vector<std::string> replaced;
  if (!command.plug_in.path.empty()) replaced = {kPluginVariable, "ROWTIDE_MODE", "ROWTIDE_MEMORY"};
  for (const auto& [name, value] : command.environment) replaced.push_back(name);
  std::vector<std::string> variables;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string text = *variable;
    const std::string name = text.substr(0, text.find('='));
    if (std::find(replaced.begin(), replaced.end(), name) == replaced.end()) variables.push_back(text);
  }
  for (const auto& [name, value] : command.environment) variables.push_back(name + "=" + value);
  return variables;
}

/// The last lines that say something, for an error message.
std::string last_lines(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    if (text.find_first_not_of(" \t\r", at) < end) lines.push_back(printable(text.substr(at, end - at)));
    at = end + 1;
  }
  if (lines.size() > kTailLines) lines.erase(lines.begin(), lines.end() - kTailLines);
  return lines.empty() ? "it printed nothing" : fmt::format("its last lines: {}", fmt::join(lines, " | "));
}

class Server {
 public:
  Server(const ServerCommand& command, const ListenAddress& address)
      : command_(command), address_(address), child_(command.program, command.arguments, environment_of(command)) {}

  /// Until it answers. False if a signal came first; it is then stopped.
  bool start(const StopSignals& signals, Ready& ready);
  /// Until a signal comes.
  void serve(const StopSignals& signals);

 private:
  void pass_on_output(int wait_ms);
  [[noreturn]] void fail_ended(int status, bool starting);
  void check_plug_in(bool ready);
  bool stop_if_asked(const StopSignals& signals);
  void stop(int signal, const StopSignals* signals);
  double seconds_since_start() const { return std::chrono::duration<double>(Clock::now() - started_).count(); }

  const ServerCommand& command_;
  const ListenAddress& address_;
  ChildProcess child_;
  Clock::time_point started_ = Clock::now();
  std::string tail_;  // of its output
};

void Server::pass_on_output(int wait_ms) {
  std::string printed;
  child_.take_output(printed, wait_ms);
  if (printed.empty()) return;
  std::fwrite(printed.data(), 1, printed.size(), stderr);
  tail_ += printed;
  if (tail_.size() > kTailBytes) tail_.erase(0, tail_.size() - kTailBytes);
}

void Server::fail_ended(int status, bool starting) {
  pass_on_output(0);
  const std::string how = exit_text(status);
  if (!starting) throw Failure(kExitFailed, "llama", fmt::format("llama-server {}; {}", how, last_lines(tail_)));
  if (WIFEXITED(status) && WEXITSTATUS(status) == kCannotRun && tail_.empty()) {
    throw Failure(kExitFailed, "resource", fmt::format("{} cannot be run; give --llama-server FILE", command_.program));
  }
  const std::string bound = line_with(tail_, {"couldn't bind", "failed to bind"});
  if (!bound.empty()) {
    throw Failure(kExitFailed, "io",
                  fmt::format("--port {}: llama-server cannot listen there: {}", address_.port(), bound));
  }
  const std::string refused =
      line_with(tail_, {"error loading model", "failed to load model", "unknown model architecture"});
  if (!refused.empty()) {
    throw Failure(kExitRefused, "llama", fmt::format("llama-server {}: {}; {}", how, refused, last_lines(tail_)));
  }
  throw Failure(kExitFailed, "llama", fmt::format("llama-server {} while it started; {}", how, last_lines(tail_)));
}

/// llama.cpp goes on silently without a plug-in that it refuses: that is found out here, and ends it.
void Server::check_plug_in(bool ready) {
  if (command_.plug_in.path.empty()) return;
  const auto sign = sign_of(child_.pid());
  const std::string failed = ready && sign && sign->tables.empty() ? line_with(tail_, {"rowtide: "}) : "";
  if (sign && failed.empty()) return;
  pass_on_output(0);
  const std::string reason = sign ? failed : plug_in_refusal_reason(tail_);
  stop(SIGTERM, nullptr);
  throw Failure(
      kExitNotSo, "not_served",
      fmt::format("llama-server goes on without {}{}, and was stopped; {}", command_.plug_in.path,
                  reason.empty() ? "" : " (" + reason + ")", sign ? "mend what it says" : plug_in_refusal_fix(reason)));
}

bool Server::stop_if_asked(const StopSignals& signals) {
  const int signal = signals.take();
  if (signal == 0) return false;
  stop(signal, &signals);
  return true;
}

/// A second signal does not wait any longer.
void Server::stop(int signal, const StopSignals* signals) {
  child_.send_signal(signal == SIGINT ? SIGINT : SIGTERM);
  const auto until = Clock::now() + kGrace;
  int status = 0;
  while (!child_.has_ended(status)) {
    pass_on_output(kPollMs);
    if (Clock::now() > until || (signals != nullptr && signals->take() != 0)) {
      std::fputs("rowtide: llama-server does not end, and is killed\n", stderr);
      child_.kill_group();
      break;
    }
  }
  pass_on_output(0);
}

bool Server::start(const StopSignals& signals, Ready& ready) {
  auto notice = started_ + kNotice;
  int status = 0;
  while (true) {
    pass_on_output(kPollMs);
    if (child_.has_ended(status)) fail_ended(status, true);
    if (stop_if_asked(signals)) return false;
    // It answers 503 from when it has loaded its back ends until it has loaded the model.
    const auto health = address_.health_status(kHealthLimit);
    if (health) check_plug_in(*health == 200);
    if (health == 200) break;
    if (Clock::now() < notice) continue;
    std::fputs(fmt::format("rowtide: llama-server has been starting for {:.0f} s\n", seconds_since_start()).c_str(),
               stderr);
    notice += kNotice;
  }
  ready.seconds = seconds_since_start();
  ready.pid = child_.pid();
  if (const auto sign = sign_of(child_.pid())) ready.tables = sign->tables;
  return true;
}

void Server::serve(const StopSignals& signals) {
  int status = 0;
  while (!stop_if_asked(signals)) {
    pass_on_output(kPollMs);
    if (child_.has_ended(status)) fail_ended(status, false);
  }
}

}  // namespace

void run_server(const ServerCommand& command, const ListenAddress& address, const StopSignals& signals,
                const std::function<void(const Ready&)>& ready) {
  Server server(command, address);
  Ready state;
  if (!server.start(signals, state)) return;
  ready(state);
  server.serve(signals);
}

}  // namespace rowtide::cli::serve
