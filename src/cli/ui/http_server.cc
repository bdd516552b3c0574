#include "cli/ui/http_server.h"

#include <arpa/inet.h>
#include <event2/buffer.h>
#include <event2/http.h>
#include <event2/keyvalq_struct.h>
#include <event2/listener.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <exception>
#include <string>

#include "base/error.h"
#include "cli/failure.h"
#include "cli/ui/http_connections.h"

namespace rowtide::cli::ui {
namespace {

constexpr ev_ssize_t kRequestBytesMax = ev_ssize_t{16} << 10;  // its line and headers
constexpr int kWaitingMax = 64;                                // in the listener's queue

constexpr std::array<std::pair<const char*, const char*>, 7> kHeadersOfAll = {{
    // Scripts and styles come from this server's own files, nothing is fetched from elsewhere, no other site may frame
    // the page or read an answer.
    {"Content-Security-Policy",
     "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
     "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"},
    {"X-Content-Type-Options", "nosniff"},
    {"Referrer-Policy", "no-referrer"},
    {"Cross-Origin-Resource-Policy", "same-origin"},
    {"Cross-Origin-Opener-Policy", "same-origin"},
    {"Cache-Control", "no-store"},
    {"Connection", "close"},
}};

HttpResponse refusal(int status, std::string_view what) {
  return {status, "text/plain; charset=utf-8", fmt::format("{}\n", what)};
}

Result<HttpRequest> taken_apart(evhttp_request* request) {
  const evhttp_uri* const target = ::evhttp_request_get_evhttp_uri(request);
  const char* const path = ::evhttp_uri_get_path(target);
  if (::evhttp_uri_get_host(target) != nullptr || path == nullptr || *path != '/') {
    return make_error(ErrorCode::kMalformed, "the request's target is no path");
  }
  HttpRequest result;
  result.path = path;
  const char* const query = ::evhttp_uri_get_query(target);
  auto parsed = parse_query(query == nullptr ? "" : query);
  if (!parsed) return parsed.error();
  result.query = std::move(*parsed);
  const evkeyvalq* const headers = ::evhttp_request_get_input_headers(request);
  for (const evkeyval* header = headers->tqh_first; header != nullptr; header = header->next.tqe_next) {
    result.headers.emplace_back(header->key, header->value);
  }
  return result;
}

HttpResponse answer(evhttp_request* request, const HttpServer::Handler& handler) {
  const auto method = ::evhttp_request_get_command(request);
  if (method != EVHTTP_REQ_GET && method != EVHTTP_REQ_HEAD) return refusal(405, "only GET and HEAD are served");
  try {
    const auto asked = taken_apart(request);
    if (!asked) return refusal(400, asked.error().message);
    const auto is_host = [](const auto& header) {
      return ::evutil_ascii_strcasecmp(header.first.c_str(), "host") == 0;
    };
    if (std::ranges::count_if(asked->headers, is_host) != 1)
      return refusal(400, "the request must have one Host header");
    if (!names_loopback(*asked->header("host"))) return refusal(403, "the Host header names another machine");
    return handler(*asked);
  } catch (const std::exception& error) {
    return refusal(500, error.what());
  }
}

void send(evhttp_request* request, const HttpResponse& response) {
  evkeyvalq* const headers = ::evhttp_request_get_output_headers(request);
  for (const auto& [name, value] : kHeadersOfAll) ::evhttp_add_header(headers, name, value);
  ::evhttp_add_header(headers, "Content-Type", response.content_type.c_str());
  ::evhttp_add_header(headers, "Content-Length", std::to_string(response.body.size()).c_str());
  if (response.status == 405) ::evhttp_add_header(headers, "Allow", "GET, HEAD");
  const std::unique_ptr<evbuffer, FreeBy<::evbuffer_free>> body(::evbuffer_new());
  if (::evhttp_request_get_command(request) != EVHTTP_REQ_HEAD) {
    ::evbuffer_add(body.get(), response.body.data(), response.body.size());
  }
  ::evhttp_send_reply(request, response.status, nullptr, body.get());
}

void answer_and_send(evhttp_request* request, void* handler) {
  send(request, answer(request, *static_cast<const HttpServer::Handler*>(handler)));
}

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

template <typename Pointer>
Pointer made(Pointer pointer) {
  if (!pointer)
    throw Failure(kExitFailed, "resource", "connections cannot be waited for: out of memory or descriptors");
  return pointer;
}

/// Writing to a connection that the other end has closed is an error here, and must not end the program.
class WithoutPipeSignal {
 public:
  WithoutPipeSignal() : before_(::signal(SIGPIPE, SIG_IGN)) {}
  ~WithoutPipeSignal() { ::signal(SIGPIPE, before_); }
  WithoutPipeSignal(const WithoutPipeSignal&) = delete;
  WithoutPipeSignal& operator=(const WithoutPipeSignal&) = delete;

 private:
  sighandler_t before_;
};

}  // namespace

struct HttpServer::Parts {
  EventBase base;
  std::unique_ptr<HttpConnections> connections;
  std::unique_ptr<evhttp, FreeBy<::evhttp_free>> http;  // owns the listener; the first to go
};

HttpServer::HttpServer(std::uint16_t port) : parts_(std::make_unique<Parts>()) {
  parts_->base = made(EventBase(::event_base_new()));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  socklen_t size = sizeof address;
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  // A port that was ours a minute ago is free: LEV_OPT_REUSEABLE.
  std::unique_ptr<evconnlistener, FreeBy<::evconnlistener_free>> listener(::evconnlistener_new_bind(
      parts_->base.get(), nullptr, nullptr, LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC | LEV_OPT_REUSEABLE,
      kWaitingMax, generic, static_cast<int>(size)));
  if (!listener || ::getsockname(::evconnlistener_get_fd(listener.get()), generic, &size) != 0) {
    throw listen_failure(port);
  }
  port_ = ntohs(address.sin_port);

  parts_->connections = std::make_unique<HttpConnections>(parts_->base.get(), listener.get());
  parts_->http.reset(::evhttp_new(parts_->base.get()));
  evhttp* const http = made(parts_->http.get());
  ::evhttp_set_max_headers_size(http, kRequestBytesMax);
  ::evhttp_set_max_body_size(http, 0);
  ::evhttp_set_flags(http, EVHTTP_SERVER_LINGERING_CLOSE);
  // All that it knows: those that are not served get our answer, not its own.
  ::evhttp_set_allowed_methods(http, EVHTTP_REQ_GET | EVHTTP_REQ_POST | EVHTTP_REQ_HEAD | EVHTTP_REQ_PUT |
                                         EVHTTP_REQ_DELETE | EVHTTP_REQ_OPTIONS | EVHTTP_REQ_TRACE |
                                         EVHTTP_REQ_CONNECT | EVHTTP_REQ_PATCH);
  ::evhttp_set_bevcb(
      http, [](event_base*, void* connections) { return static_cast<HttpConnections*>(connections)->add(); },
      parts_->connections.get());
  made(::evhttp_bind_listener(http, listener.get()));
  (void)listener.release();
}

HttpServer::~HttpServer() = default;

void HttpServer::serve(const Handler& handler, int stop_descriptor) {
  const WithoutPipeSignal without_pipe_signal;
  event_base* const base = parts_->base.get();
  ::evhttp_set_gencb(parts_->http.get(), answer_and_send, const_cast<Handler*>(&handler));
  const Event stop = made(Event(::event_new(
      base, stop_descriptor, EV_READ,
      [](evutil_socket_t, short, void* to_stop) { ::event_base_loopbreak(static_cast<event_base*>(to_stop)); }, base)));
  ::event_add(stop.get(), nullptr);
  if (::event_base_dispatch(base) < 0) {
    throw Failure(kExitFailed, "io", fmt::format("connections cannot be waited for: {}", errno_text(errno)));
  }
}

}  // namespace rowtide::cli::ui
