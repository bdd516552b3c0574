#include "cli/serve/listen_address.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <string_view>

#include "base/error.h"
#include "base/printable.h"
#include "cli/failure.h"
#include "cli/ui/descriptor.h"

namespace rowtide::cli::serve {
namespace {

using ui::Descriptor;
using Clock = std::chrono::steady_clock;

Failure listen_failure(const std::string& host, std::uint16_t port) {
  if (errno == EADDRINUSE) {
    return {kExitFailed, "io",
            fmt::format("--port {}: another program listens there; give another port, or --port 0 for any that is free",
                        port)};
  }
  if (errno == EACCES) {
    return {kExitFailed, "io",
            fmt::format("--port {}: this user may not listen there; give a port of 1024 or more", port)};
  }
  if (errno == EADDRNOTAVAIL) {
    return usage_failure("--host {}: this machine has no such address; 127.0.0.1 is for itself alone, 0.0.0.0 for all",
                         host);
  }
  return {kExitFailed, "io",
          fmt::format("--host {} --port {}: nothing can listen there: {}", host, port, errno_text(errno))};
}

/// The address that `host` is the number of.
socklen_t parse(const std::string& host, sockaddr_storage& address) {
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(host.c_str(), nullptr, &hints, &found) != 0 || found == nullptr) return 0;
  const socklen_t bytes = found->ai_addrlen;
  std::memcpy(&address, found->ai_addr, bytes);
  ::freeaddrinfo(found);
  return bytes;
}

in_port_t& port_of(sockaddr_storage& address) {
  return address.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(address).sin6_port
                                       : reinterpret_cast<sockaddr_in&>(address).sin_port;
}

/// Listening on every address, a server is reached on loopback.
void replace_any(sockaddr_storage& address) {
  if (address.ss_family == AF_INET6) {
    auto& six = reinterpret_cast<sockaddr_in6&>(address);
    if (IN6_IS_ADDR_UNSPECIFIED(&six.sin6_addr)) six.sin6_addr = in6addr_loopback;
  } else {
    auto& four = reinterpret_cast<sockaddr_in&>(address);
    if (four.sin_addr.s_addr == htonl(INADDR_ANY)) four.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  }
}

/// Waits until the socket can be read from or written to.
bool wait_for(const Descriptor& socket, short events, Clock::time_point until) {
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
    if (left <= 0) return false;
    pollfd entry{socket.number(), events, 0};
    const int ready = ::poll(&entry, 1, static_cast<int>(left));
    if (ready > 0) return true;
    if (ready == 0 || errno != EINTR) return false;
  }
}

/// "HTTP/1.1 503 Service Unavailable" -> 503.
std::optional<int> status_of(std::string_view answer) {
  const auto gap = answer.find(' ');
  if (!answer.starts_with("HTTP/") || gap == std::string_view::npos) return std::nullopt;
  int status = 0;
  const auto [end, failed] = std::from_chars(answer.data() + gap + 1, answer.data() + answer.size(), status);
  if (failed != std::errc() || status < 100 || status > 599) return std::nullopt;
  return status;
}

}  // namespace

ListenAddress::ListenAddress(const std::string& host, std::uint16_t port)
    : host_(host == "localhost" ? "127.0.0.1" : host) {
  target_bytes_ = parse(host_, target_);
  if (target_bytes_ == 0) {
    throw usage_failure("--host {}: it must be an IP address of this machine, such as 127.0.0.1 or 0.0.0.0",
                        printable(host));
  }
  port_of(target_) = htons(port);
  const Descriptor tried(::socket(target_.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;  // a port that was ours a minute ago is free
  if (tried.number() >= 0) ::setsockopt(tried.number(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  auto* const generic = reinterpret_cast<sockaddr*>(&target_);
  if (tried.number() < 0 || ::bind(tried.number(), generic, target_bytes_) != 0 || ::listen(tried.number(), 1) != 0 ||
      ::getsockname(tried.number(), generic, &target_bytes_) != 0) {
    throw listen_failure(host_, port);
  }
  port_ = ntohs(port_of(target_));
  replace_any(target_);
}

std::string ListenAddress::url() const {
  std::array<char, INET6_ADDRSTRLEN> text{};
  ::getnameinfo(reinterpret_cast<const sockaddr*>(&target_), target_bytes_, text.data(), text.size(), nullptr, 0,
                NI_NUMERICHOST);
  const std::string host = text.data();
  return target_.ss_family == AF_INET6 ? fmt::format("http://[{}]:{}", host, port_)
                                       : fmt::format("http://{}:{}", host, port_);
}

std::optional<int> ListenAddress::health_status(std::chrono::milliseconds limit) const {
  const auto until = Clock::now() + limit;
  const Descriptor socket(::socket(target_.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (socket.number() < 0) return std::nullopt;
  const int connected = ::connect(socket.number(), reinterpret_cast<const sockaddr*>(&target_), target_bytes_);
  if (connected != 0 && (errno != EINPROGRESS || !wait_for(socket, POLLOUT, until))) return std::nullopt;
  constexpr std::string_view kRequest = "GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
  if (::send(socket.number(), kRequest.data(), kRequest.size(), MSG_NOSIGNAL) != std::ssize(kRequest)) {
    return std::nullopt;
  }
  std::string answer;
  while (answer.find("\r\n") == std::string::npos && answer.size() < 1024) {
    std::array<char, 512> piece{};
    if (!wait_for(socket, POLLIN, until)) return std::nullopt;
    const ssize_t got = ::recv(socket.number(), piece.data(), piece.size(), 0);
    if (got <= 0) return std::nullopt;
    answer.append(piece.data(), static_cast<std::size_t>(got));
  }
  return status_of(answer);
}

}  // namespace rowtide::cli::serve
