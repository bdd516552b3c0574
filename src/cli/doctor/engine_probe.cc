#include "cli/doctor/engine_probe.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "cli/doctor/limited_run.h"
#include "cli/failure.h"
#include "cli/llama_server.h"

extern char** environ;

namespace rowtide::cli::doctor {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kDeviceName = "Rowtide";  // as ggml lists the plug-in's device

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
  const std::string line = line_with(run.output, {"version:"});
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
    serves = sign_of(server).has_value();
    return serves || opened;
  };
  const LimitedRun run = run_limited(probe.llama_server, {"-m", model.path(), "--host", "127.0.0.1", "--port", "0"},
                                     server_environment(probe.plug_in), limit, far_enough);
  probe.reason = plug_in_refusal_reason(run.output);
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
  if (probe.reason.empty()) probe.reason = plug_in_refusal_reason(run.output);
  const bool listed = run.output.find("  " + std::string(kDeviceName) + ":") != std::string::npos;
  if (!run.succeeded() || !listed) return;
  const bool ended = probe.outcome == EngineProbe::Plugin::kEnded;
  probe.outcome = ended ? EngineProbe::Plugin::kListed : EngineProbe::Plugin::kListedOnly;
}

}  // namespace

EngineProbe probe_engine(const std::string& search_path, std::chrono::milliseconds limit) {
  EngineProbe probe;
  probe.llama_server = find_llama_server(search_path);
  const PlugIn plug_in = find_plug_in();
  probe.plug_in = plug_in.path;
  probe.from_environment = plug_in.from_environment;
  probe.plug_in_missing = plug_in.is_missing;
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
