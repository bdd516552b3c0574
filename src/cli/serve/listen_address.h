// Where a server is to listen, and whether it answers there.
#pragma once

#include <netinet/in.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace rowtide::cli::serve {

class ListenAddress {
 public:
  /// `host` is an IP address or "localhost"; port 0 is any free one, which is then fixed. Throws the Failure that names
  /// --host or --port where nothing can listen there.
  ListenAddress(const std::string& host, std::uint16_t port);

  const std::string& host() const { return host_; }  // as a number
  std::uint16_t port() const { return port_; }
  /// What a program on this machine connects to: "http://127.0.0.1:8080", also where all addresses are listened on.
  std::string url() const;

  /// The status of the answer to GET /health; nothing where none comes in `limit`.
  std::optional<int> health_status(std::chrono::milliseconds limit) const;

 private:
  std::string host_;
  std::uint16_t port_ = 0;
  sockaddr_storage target_{};  // to connect to
  socklen_t target_bytes_ = 0;
};

}  // namespace rowtide::cli::serve
