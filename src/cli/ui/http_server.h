// A server of HTTP for one person's browser on the same machine. A few hundred lines of it, because Debian's
// cpp-httplib is a shared library that brings OpenSSL and brotli, which the archive for other machines could not hold.
#pragma once

#include <cstdint>
#include <functional>

#include "cli/ui/descriptor.h"
#include "cli/ui/http_message.h"

namespace rowtide::cli::ui {

/// One thread serves all: a handler that takes long keeps the others waiting. Each connection carries one request, has
/// seconds to send it and to take the answer, and there are at most 64, so that nobody can hold the server up for good.
class HttpServer {
 public:
  using Handler = std::function<HttpResponse(const HttpRequest&)>;

  /// Listens on 127.0.0.1; 0 is any free port. Throws the Failure that names --port where it is taken or not allowed.
  explicit HttpServer(std::uint16_t port);

  std::uint16_t port() const { return port_; }

  /// Answers until `stop_descriptor` can be read from. Requests that do not parse, are not GET or HEAD, or whose Host
  /// is not loopback are refused before `handler` sees them.
  void serve(const Handler& handler, int stop_descriptor);

 private:
  Descriptor listener_;
  std::uint16_t port_ = 0;
};

}  // namespace rowtide::cli::ui
