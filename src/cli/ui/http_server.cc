#include "cli/ui/http_server.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <exception>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "cli/failure.h"

namespace rowtide::cli::ui {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kConnectionsMax = 64;
constexpr std::chrono::seconds kPatience{10};         // for a whole request, and for a whole answer to be taken
constexpr std::chrono::seconds kFarewellPatience{2};  // for the other end to close
constexpr int kWakeMs = 500;

HttpResponse refusal(int status, std::string_view what) {
  return {status, "text/plain; charset=utf-8", fmt::format("{}\n", what)};
}

/// The answer to the whole head of a request.
std::string answer(std::string_view head, const HttpServer::Handler& handler) {
  const auto request = parse_http_request(head);
  if (!request) return http_text(refusal(400, request.error().message), true);
  const bool with_body = request->method != "HEAD";
  if (!names_loopback(*request->header("host"))) {
    return http_text(refusal(403, "the Host header names another machine"), with_body);
  }
  if (with_body && request->method != "GET") return http_text(refusal(405, "only GET and HEAD are served"), true);
  try {
    return http_text(handler(*request), with_body);
  } catch (const std::exception& error) {
    return http_text(refusal(500, error.what()), with_body);
  }
}

/// One connection: its request comes in, its answer goes out, and what else comes in is thrown away until the other end
/// closes; closing first with bytes unread would make the kernel take back the answer.
class Connection {
 public:
  explicit Connection(Descriptor socket) : socket_(std::move(socket)), until_(Clock::now() + kPatience) {}

  pollfd poll_entry() const {
    const short events = step_ == Step::kAnswer ? POLLOUT : POLLIN;
    return {socket_.number(), events, 0};
  }

  /// Goes on as far as it can without waiting.
  void proceed(const HttpServer::Handler& handler) {
    if (step_ == Step::kRequest) receive(handler);
    if (step_ == Step::kAnswer) send();
    if (step_ == Step::kFarewell) drain();
  }

  bool is_over() const { return step_ == Step::kOver || Clock::now() > until_; }

 private:
  enum class Step { kRequest, kAnswer, kFarewell, kOver };

  /// Bytes of what has come, 0 when the other end has closed or failed; nothing when there is none yet.
  std::optional<std::size_t> read_some(std::array<char, 4096>& buffer) {
    const ssize_t count = ::recv(socket_.number(), buffer.data(), buffer.size(), 0);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return std::nullopt;
    return count < 0 ? 0 : static_cast<std::size_t>(count);
  }

  void receive(const HttpServer::Handler& handler) {
    std::array<char, 4096> buffer{};
    while (step_ == Step::kRequest) {
      const auto count = read_some(buffer);
      if (!count) return;
      if (*count == 0) {
        step_ = Step::kOver;
        return;
      }
      request_.append(buffer.data(), *count);
      const std::size_t end = request_.find("\r\n\r\n");
      if (end == std::string::npos && request_.size() <= kRequestBytesMax) continue;
      const bool is_too_long = end > kRequestBytesMax;  // or not there at all
      answer_ = is_too_long ? http_text(refusal(431, "the request is too long"), true)
                            : answer(std::string_view(request_).substr(0, end + 4), handler);
      step_ = Step::kAnswer;
      until_ = Clock::now() + kPatience;
    }
  }

  void send() {
    while (sent_ < answer_.size()) {
      const ssize_t count = ::send(socket_.number(), answer_.data() + sent_, answer_.size() - sent_, MSG_NOSIGNAL);
      if (count < 0) {
        if (errno != EAGAIN && errno != EINTR) step_ = Step::kOver;
        return;
      }
      sent_ += static_cast<std::size_t>(count);
    }
    ::shutdown(socket_.number(), SHUT_WR);
    step_ = Step::kFarewell;
    until_ = Clock::now() + kFarewellPatience;
  }

  void drain() {
    std::array<char, 4096> buffer{};
    const auto count = read_some(buffer);  // one piece a turn: whoever never stops sending runs out of time
    if (count && *count == 0) step_ = Step::kOver;
  }

  Descriptor socket_;
  Step step_ = Step::kRequest;
  Clock::time_point until_;
  std::string request_;
  std::string answer_;
  std::size_t sent_ = 0;
};

Failure listen_failure(std::uint16_t port) {
  if (errno == EADDRINUSE) {
    return {kExitFailed, "io",
            fmt::format("--port {}: another program listens there; give another port, or --port 0 for any that is free",
                        port)};
  }
  if (errno == EACCES) {
    return {kExitFailed, "io",
            fmt::format("--port {}: this user may not listen there; give a port of 1024 or more", port)};
  }
  return {kExitFailed, "io", fmt::format("--port {}: nothing can listen there: {}", port, errno_text(errno))};
}

}  // namespace

HttpServer::HttpServer(std::uint16_t port) {
  listener_ = Descriptor(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (listener_.number() < 0) throw listen_failure(port);
  const int on = 1;  // a port that was ours a minute ago is free
  ::setsockopt(listener_.number(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  socklen_t size = sizeof address;
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  if (::bind(listener_.number(), generic, size) != 0 || ::listen(listener_.number(), SOMAXCONN) != 0 ||
      ::getsockname(listener_.number(), generic, &size) != 0) {
    throw listen_failure(port);
  }
  port_ = ntohs(address.sin_port);
}

void HttpServer::serve(const Handler& handler, int stop_descriptor) {
  std::vector<Connection> connections;
  std::vector<pollfd> entries;
  while (true) {
    entries.clear();
    for (const Connection& connection : connections) entries.push_back(connection.poll_entry());
    entries.push_back({stop_descriptor, POLLIN, 0});
    if (connections.size() < kConnectionsMax) entries.push_back({listener_.number(), POLLIN, 0});
    if (::poll(entries.data(), entries.size(), connections.empty() ? -1 : kWakeMs) < 0 && errno != EINTR) {
      throw Failure(kExitFailed, "io", fmt::format("connections cannot be waited for: {}", errno_text(errno)));
    }
    if (entries[connections.size()].revents != 0) return;
    // All of them: while one was answered, something may have come for another.
    for (Connection& connection : connections) connection.proceed(handler);
    std::erase_if(connections, [](const Connection& connection) { return connection.is_over(); });
    while (connections.size() < kConnectionsMax) {
      Descriptor socket(::accept4(listener_.number(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
      if (socket.number() < 0) break;
      connections.emplace_back(std::move(socket));
    }
  }
}

}  // namespace rowtide::cli::ui
