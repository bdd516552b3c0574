#include "cli/own_process.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <vector>

#include "base/error.h"
#include "cli/failure.h"

extern char** environ;

namespace rowtide::cli {
namespace {

Failure process_failure(std::string_view what) {
  return {kExitFailed, "resource", fmt::format("starting a process of its own to measure in: {}", what)};
}

class Descriptor {
 public:
  explicit Descriptor(int descriptor) : descriptor_(descriptor) {
    if (descriptor_ < 0) throw process_failure(errno_text(errno));
  }
  ~Descriptor() { close(descriptor_); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return descriptor_; }

 private:
  int descriptor_;
};

void write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(descriptor, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) throw process_failure(errno_text(errno));
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  lseek(descriptor, 0, SEEK_SET);
}

std::string whole_content(int descriptor) {
  std::string text;
  std::array<char, 4096> piece;
  lseek(descriptor, 0, SEEK_SET);
  for (ssize_t got; (got = read(descriptor, piece.data(), piece.size())) > 0;) {
    text.append(piece.data(), static_cast<std::size_t>(got));
  }
  return text;
}

pid_t spawn(const Arguments& arguments, int input, int output) {
  std::vector<char*> words;
  for (const std::string& argument : arguments) words.push_back(const_cast<char*>(argument.c_str()));
  words.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  pid_t child = 0;
  const int error = posix_spawn(&child, "/proc/self/exe", &actions, nullptr, words.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) throw process_failure(errno_text(error));
  return child;
}

}  // namespace

Json run_own_process(Arguments arguments, const std::string& input) {
  const Descriptor in(memfd_create("rowtide-input", MFD_CLOEXEC)), out(memfd_create("rowtide-output", MFD_CLOEXEC));
  write_all(in.get(), input);
  arguments.insert(arguments.begin(), "rowtide");
  arguments.emplace_back(kJsonFlag);
  constexpr int kKeepWhatIsSet = 0;
  setenv("ROWTIDE_LOG", "error", kKeepWhatIsSet);
  const pid_t child = spawn(arguments, in.get(), out.get());
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  const Json document = Json::parse(whole_content(out.get()), nullptr, /*allow_exceptions=*/false);
  if (WIFEXITED(status) && WEXITSTATUS(status) == kExitDone && document.is_object()) return document;
  if (WIFEXITED(status) && document.is_object() && document.contains("error")) {
    throw Failure(static_cast<ExitCode>(WEXITSTATUS(status)), document["error"]["code"], document["error"]["message"]);
  }
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS) {
    throw Failure(kExitFailed, "io", "a file was cut short while a process that was measured had it mapped");
  }
  throw process_failure(WIFSIGNALED(status) ? fmt::format("it was killed by signal {}", WTERMSIG(status))
                                            : fmt::format("it ended with code {}", WEXITSTATUS(status)));
}

}  // namespace rowtide::cli
