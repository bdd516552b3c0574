// rowtide ui: the Explorer page, on this machine alone.

#include <fmt/format.h>

#include <cstdio>

#include "cli/command.h"
#include "cli/json_output.h"
#include "cli/stop_signals.h"
#include "cli/ui/api.h"
#include "cli/ui/http_server.h"

namespace rowtide::cli {
namespace {

constexpr std::uint32_t kPort = 7698;  // ROWT on a telephone's keys

void announce(const std::string& url, bool json) {
  if (json) {
    print_json({{"url", url}});
  } else {
    fmt::print("Rowtide Explorer: {}\nOpen it in a browser on this machine. Ctrl-C stops it.\n", url);
  }
  flush_output();  // nobody would learn of the address
}

}  // namespace

ExitCode run_ui(const Arguments& arguments) {
  std::uint32_t port = kPort;
  bool json = false;
  bool allows_paths = false;
  ArgumentParser parser(
      "rowtide ui",
      "Serves a page on which plans are explored: what fits on which machine, how fast it will be, and what to type.\n"
      "It answers this machine alone, needs no network, and stops at Ctrl-C. To use it from another machine, have ssh\n"
      "forward the port: ssh -L 7698:127.0.0.1:7698 HOST.",
      "  rowtide ui\n"
      "  rowtide ui --port 0\n"
      "  rowtide ui --paths\n",
      json);
  parser.number("--port", port, 0, 65535, "the port of 127.0.0.1 to listen on; 0 is any that is free");
  parser.flag("--paths", allows_paths,
              "let the page plan checkpoints of this machine by their path; every user of the machine can then ask of "
              "files that you may read");
  if (!parser.parse(arguments)) return kExitDone;

  const StopSignals stop;
  ui::HttpServer server(static_cast<std::uint16_t>(port));
  announce(fmt::format("http://127.0.0.1:{}/", server.port()), json);
  server.serve([&](const ui::HttpRequest& request) { return ui::answer_page(request, allows_paths); },
               stop.descriptor());
  return kExitDone;
}

}  // namespace rowtide::cli
