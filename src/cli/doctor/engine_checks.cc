#include <fmt/format.h>

#include "cli/doctor/checks.h"
#include "cli/llama_server.h"

namespace rowtide::cli::doctor {
namespace {

using Plugin = EngineProbe::Plugin;

Finding check_llama_server(const EngineProbe& probe) {
  Finding found{"llama_server", Group::kEngine, Level::kOk, "", "", ""};
  if (probe.llama_server.empty()) {
    found.level = Level::kNote;
    found.finding = "no llama-server in PATH, nor beside this program";
    found.meaning = "rowtide generate and try need none; to serve a model, llama-server does";
    found.fix = "install llama.cpp v0.5.0 or v0.6.0 and add its folder to PATH: export PATH=$PATH:FOLDER";
    return found;
  }
  found.finding = probe.llama_server;
  if (!probe.version.empty()) {
    found.finding += ", " + probe.version;
    return found;
  }
  found.level = Level::kWarning;
  found.finding += " " + (probe.version_failure.empty() ? "does not tell its version" : probe.version_failure);
  found.meaning = "it may not be llama.cpp's server, or not find its libraries";
  found.fix = "see what it says: llama-server --version";
  return found;
}

std::string with_reason(std::string text, const EngineProbe& probe) {
  return probe.reason.empty() ? text : fmt::format("{}: {}", text, probe.reason);
}

Finding check_tried_plug_in(const EngineProbe& probe) {
  Finding found{"plug_in", Group::kEngine, Level::kOk, "", "", ""};
  switch (probe.outcome) {
    case Plugin::kServes:
      found.finding = "llama-server takes " + probe.plug_in;
      if (!probe.from_environment) {
        found.level = Level::kNote;
        found.meaning = "it was told to for this test; by itself it does not look there";
        found.fix = "export GGML_BACKEND_PATH=" + probe.plug_in;
      }
      return found;
    case Plugin::kListed:
      found.level = Level::kNote;
      found.finding = fmt::format("llama-server lists {} among its devices", probe.plug_in);
      found.meaning = fmt::format("on a model that is an empty pipe it {}, so more is not known", probe.ended);
      found.fix = "start it on a model, and look for the line 'rowtide: serving'";
      return found;
    case Plugin::kListedOnly:
      found.level = Level::kWarning;
      found.finding = "llama-server takes the plug-in where it lists its devices, but not by itself for a model";
      found.meaning = "built without dynamic backends, it looks for plug-ins only when it has to list devices";
      found.fix = "add -ot rowtide-never-matches=CPU to its arguments, or name your devices with -dev";
      return found;
    case Plugin::kRefused:
      found.level = Level::kProblem;
      found.finding = with_reason("llama-server goes on without " + probe.plug_in, probe);
      found.meaning = "models run, but their tables are not served by Rowtide, and nothing else would tell";
      found.fix = plug_in_refusal_fix(probe.reason);
      return found;
    case Plugin::kEnded:
      found.level = Level::kProblem;
      found.finding = with_reason(fmt::format("llama-server with {} {}", probe.plug_in, probe.ended), probe);
      found.meaning = "no model can be served with Rowtide";
      found.fix = fmt::format("see what it says: GGML_BACKEND_PATH={} llama-server --list-devices", probe.plug_in);
      return found;
    case Plugin::kTimeOut:
      found.level = Level::kWarning;
      found.finding = "llama-server did not get to opening a model in time";
      found.meaning = "whether it takes the plug-in is not known";
      found.fix = fmt::format("see where it stops: GGML_BACKEND_PATH={} llama-server --list-devices", probe.plug_in);
      return found;
    case Plugin::kNotTried: break;
  }
  found.level = Level::kNote;
  found.finding = with_reason("not tried: llama-server could not be started on a model", probe);
  found.meaning = "whether it takes the plug-in is not known";
  found.fix = "see that the folder for temporary files can be written to: ls -ld ${TMPDIR:-/tmp}";
  return found;
}

Finding check_plug_in(const EngineProbe& probe) {
  Finding found{"plug_in", Group::kEngine, Level::kOk, "", "", ""};
  if (probe.plug_in_missing) {
    found.level = Level::kProblem;
    found.finding = fmt::format("GGML_BACKEND_PATH names {}, which is no file", probe.plug_in);
    found.meaning = "llama.cpp goes on without Rowtide, and says so in one line of its log at most";
    found.fix = "export GGML_BACKEND_PATH=/path/to/librowtide-ggml.so";
    return found;
  }
  if (probe.plug_in.empty()) {
    found.level = Level::kNote;
    found.finding = "no librowtide-ggml.so beside this program";
    found.meaning = "engines cannot be given Rowtide from here; rowtide's own commands need no plug-in";
    found.fix = "make build, which sets llama.cpp up and builds it";
    return found;
  }
  if (!probe.llama_server.empty()) return check_tried_plug_in(probe);
  found.finding = probe.plug_in + " is there; no llama-server to try it in";
  return found;
}

}  // namespace

Findings check_engine(const EngineProbe& probe) { return {check_llama_server(probe), check_plug_in(probe)}; }

}  // namespace rowtide::cli::doctor
