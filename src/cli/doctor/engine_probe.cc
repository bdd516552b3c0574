#include "cli/doctor/engine_probe.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/printable.h"
#include "cli/doctor/limited_run.h"
#include "cli/failure.h"

extern char** environ;

namespace rowtide::cli::doctor {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPluginFile = "librowtide-ggml.so";
constexpr const char* kPluginVariable = "GGML_BACKEND_PATH";
constexpr std::string_view kSign = "/memfd:rowtide-status";  // docs/llama-cpp.md
constexpr std::string_view kDeviceName = "Rowtide";          // as ggml lists the plug-in's device

std::string program_in(const std::string& search_path, const std::string& name) {
  for (std::size_t at = 0; at <= search_path.size();) {
    const std::string folder = search_path.substr(at, search_path.find(':', at) - at);
    const std::string path = (folder.empty() ? "." : folder) + "/" + name;
    std::error_code absent;
    if (fs::is_regular_file(path, absent) && ::access(path.c_str(), X_OK) == 0) return path;
    at += folder.size() + 1;
  }
  return {};
}

void find_plug_in(EngineProbe& probe) {
  std::error_code absent;
  if (const char* named = std::getenv(kPluginVariable); named != nullptr && *named != '\0') {
    probe.plug_in = named;
    probe.from_environment = true;
    probe.plug_in_missing = !fs::is_regular_file(named, absent);
    return;
  }
  const fs::path folder = fs::read_symlink("/proc/self/exe", absent).parent_path();
  for (const fs::path& candidate : {folder, folder.parent_path() / ROWTIDE_LIBRARY_FOLDER}) {
    if (!fs::is_regular_file(candidate / kPluginFile, absent)) continue;
    probe.plug_in = (candidate / kPluginFile).string();
    return;
  }
}

/// This process's, with `plug_in` to be loaded if it is not empty, and without what would have the server do more.
std::vector<std::string> server_environment(const std::string& plug_in) {
  std::vector<std::string> variables;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    if (text.starts_with("LLAMA_") || text.starts_with("GGML_BACKEND_PATH=")) continue;
    variables.emplace_back(text);
  }
  if (!plug_in.empty()) variables.push_back(std::string(kPluginVariable) + "=" + plug_in);
  return variables;
}

/// The first line of `text` that holds one of `words`, without what stands before it.
template <std::size_t n>
std::string line_with(const std::string& text, const std::array<std::string_view, n>& words) {
  for (const std::string_view word : words) {
    const std::size_t at = text.find(word);
    if (at != std::string::npos) return printable(text.substr(at, text.find('\n', at) - at));
  }
  return {};
}

/// Why a server does without the plug-in, in its own words or the plug-in's.
std::string reason_in(const std::string& output) {
  static constexpr std::array<std::string_view, 6> kReasons = {"rowtide: not serving", "incompatible API version",
                                                               "failed to load ",      "failed to initialize",
                                                               "undefined symbol",     "no CPU backend found"};
  return line_with(output, kReasons);
}

bool has_sign(pid_t process) {
  std::error_code failed;
  const fs::path descriptors = "/proc/" + std::to_string(process) + "/fd";
  for (fs::directory_iterator at(descriptors, failed), end; !failed && at != end; at.increment(failed)) {
    std::error_code gone;
    if (fs::read_symlink(at->path(), gone).string().starts_with(kSign)) return true;
  }
  return false;
}

/// A model that a server opens and then waits for: a pipe that nobody has written into. Its name is gone before a
/// server is started, so that nothing is left behind however this program ends; the descriptor leads there still.
class PipeModel {
 public:
  PipeModel() {
    std::error_code failed;
    std::string folder = (fs::temp_directory_path(failed) / "rowtide-doctor-XXXXXX").string();
    if (failed || ::mkdtemp(folder.data()) == nullptr) return;
    const std::string name = folder + "/model.gguf";
    if (::mkfifo(name.c_str(), 0600) == 0) pipe_ = ::open(name.c_str(), O_PATH | O_CLOEXEC);
    fs::remove_all(folder, failed);
  }
  ~PipeModel() {
    if (writer_ >= 0) ::close(writer_);
    if (pipe_ >= 0) ::close(pipe_);
  }
  PipeModel(const PipeModel&) = delete;
  PipeModel& operator=(const PipeModel&) = delete;

  bool made() const { return pipe_ >= 0; }
  std::string path() const { return "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(pipe_); }
  /// Opening it for writing is refused while nobody reads. Once open, the reader waits for bytes, not for us to come.
  bool is_opened() {
    if (writer_ < 0) writer_ = ::open(path().c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    return writer_ >= 0;
  }

 private:
  int pipe_ = -1;
  int writer_ = -1;
};

void ask_for_version(EngineProbe& probe, std::chrono::milliseconds limit) {
  const LimitedRun run = run_limited(probe.llama_server, {"--version"}, server_environment(""), limit);
  static constexpr std::array<std::string_view, 1> kVersion = {"version:"};
  const std::string line = line_with(run.output, kVersion);
  if (run.succeeded() && !line.empty()) {
    probe.version = line;
  } else if (run.end == LimitedRun::End::kTimeOut) {
    probe.version_failure = "does not answer --version in time";
    probe.outcome = EngineProbe::Plugin::kTimeOut;
  } else if (!run.succeeded()) {
    probe.version_failure = "with --version, " + run.status_text();
  }
}

/// Starts a server on a model that never comes, and sees whether the sign goes up before it opens it.
void open_a_model(EngineProbe& probe, std::chrono::milliseconds limit) {
  PipeModel model;
  if (!model.made()) return;
  bool serves = false;
  const auto far_enough = [&](pid_t server) {
    const bool opened = model.is_opened();
    serves = has_sign(server);
    return serves || opened;
  };
  const LimitedRun run = run_limited(probe.llama_server, {"-m", model.path(), "--host", "127.0.0.1", "--port", "0"},
                                     server_environment(probe.plug_in), limit, far_enough);
  probe.reason = reason_in(run.output);
  if (serves) {
    probe.outcome = EngineProbe::Plugin::kServes;
  } else if (run.end == LimitedRun::End::kStopped) {
    probe.outcome = EngineProbe::Plugin::kRefused;
  } else if (run.end == LimitedRun::End::kTimeOut) {
    probe.outcome = EngineProbe::Plugin::kTimeOut;
  } else {
    probe.outcome = EngineProbe::Plugin::kEnded;
    probe.ended = run.status_text();
  }
}

void list_devices(EngineProbe& probe, std::chrono::milliseconds limit) {
  const LimitedRun run = run_limited(probe.llama_server, {"--list-devices"}, server_environment(probe.plug_in), limit);
  if (probe.reason.empty()) probe.reason = reason_in(run.output);
  const bool listed = run.output.find("  " + std::string(kDeviceName) + ":") != std::string::npos;
  if (!run.succeeded() || !listed) return;
  const bool ended = probe.outcome == EngineProbe::Plugin::kEnded;
  probe.outcome = ended ? EngineProbe::Plugin::kListed : EngineProbe::Plugin::kListedOnly;
}

}  // namespace

EngineProbe probe_engine(const std::string& search_path, std::chrono::milliseconds limit) {
  EngineProbe probe;
  probe.llama_server = program_in(search_path, "llama-server");
  find_plug_in(probe);
  if (probe.llama_server.empty()) return probe;
  try {
    ask_for_version(probe, limit);
    const bool answers = probe.outcome != EngineProbe::Plugin::kTimeOut;
    if (!answers || probe.plug_in.empty() || probe.plug_in_missing) return probe;
    open_a_model(probe, limit);
    const bool doubtful =
        probe.outcome == EngineProbe::Plugin::kRefused || probe.outcome == EngineProbe::Plugin::kEnded;
    if (doubtful) list_devices(probe, limit);
  } catch (const Failure& failure) {
    probe.reason = failure.what();
  }
  return probe;
}

}  // namespace rowtide::cli::doctor
