// A server of HTTP for one person's browser on the same machine: libevent's evhttp, narrowed to what the page needs.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "cli/ui/http_message.h"

namespace rowtide::cli::ui {

/// One thread serves all: a handler that takes long keeps the others waiting. Each connection carries one request of at
/// most 16 KiB and no body; http_connections.h limits connections.
class HttpServer {
 public:
  using Handler = std::function<HttpResponse(const HttpRequest&)>;

  /// Listens on 127.0.0.1; 0 is any free port. Throws the Failure that names --port where it is taken or not allowed.
  explicit HttpServer(std::uint16_t port);
  ~HttpServer();

  std::uint16_t port() const { return port_; }

  /// Answers until `stop_descriptor` can be read from. Requests that do not parse, are not GET or HEAD, or whose Host
  /// is not loopback are refused before `handler` sees them.
  void serve(const Handler& handler, int stop_descriptor);

 private:
  struct Parts;  // libevent's
  std::unique_ptr<Parts> parts_;
  std::uint16_t port_ = 0;
};

}  // namespace rowtide::cli::ui
