// llama-server run with the plug-in: from its start until it answers, while it serves, and to its end.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "cli/failure.h"
#include "cli/llama_server.h"
#include "cli/serve/listen_address.h"
#include "cli/stop_signals.h"

namespace rowtide::cli::serve {

struct ServerCommand {
  std::string program;                                           // the path of llama-server
  std::vector<std::string> arguments;                            // without the program
  std::vector<std::pair<std::string, std::string>> environment;  // added to this process's
  PlugIn plug_in;                                                // empty path: the model needs none
};

/// What holds once it answers.
struct Ready {
  double seconds = 0;  // that the start took
  int pid = 0;
  std::vector<std::string> tables;  // that the plug-in serves
};

/// Starts it, and passes its output on to standard error. `ready` is called once, when /health has answered and the
/// plug-in has been seen to serve. A stop signal, before or after, is handed on; the server then has 10 seconds to end,
/// after which, or at a second signal, it is killed. Returns once it is gone after a signal. Throws a Failure if it
/// ends by itself, with the last lines of its output, or if it goes on without the plug-in, after stopping it.
void run_server(const ServerCommand& command, const ListenAddress& address, const StopSignals& signals,
                const std::function<void(const Ready&)>& ready);

}  // namespace rowtide::cli::serve
