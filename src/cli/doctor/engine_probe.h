// llama-server as this user would start it, and whether it takes the plug-in. No model is needed.
#pragma once

#include <chrono>
#include <string>

namespace rowtide::cli::doctor {

struct EngineProbe {
  enum class Plugin {
    kNotTried,    // there is no llama-server or no plug-in, or llama-server does not even tell its version
    kServes,      // a server that opens a model has accepted it: its sign is up
    kListed,      // accepted where devices are listed; the server would not start on a model that is a pipe
    kListedOnly,  // accepted where devices are listed, but not where a model is opened
    kRefused,     // the server goes on without it
    kEnded,       // the server ended before it opened a model
    kTimeOut,
  };

  std::string llama_server;       // its path; empty: none
  std::string version;            // in its own words; empty: it does not tell
  std::string version_failure;    // why not, as "was killed by signal 11"
  std::string plug_in;            // its path; empty: none
  bool from_environment = false;  // GGML_BACKEND_PATH names it
  bool plug_in_missing = false;   // it names a file that is not there
  Plugin outcome = Plugin::kNotTried;
  std::string ended;   // how, of kEnded and kListed
  std::string reason;  // the line in which the server or the plug-in says why; may be empty
};

/// Looks for both (cli/llama_server.h), llama-server in the folders of `search_path` first. Then starts the server, up
/// to three times and for at most `limit` each: for its version; with the plug-in and a model that is a pipe, which it
/// waits to be written into; and, if the sign is not up by then, for its devices. Its settings from LLAMA_ARG_...
/// variables are left out, so nothing is downloaded.
EngineProbe probe_engine(const std::string& search_path, std::chrono::milliseconds limit = std::chrono::seconds(10));

}  // namespace rowtide::cli::doctor
