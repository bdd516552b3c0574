#include "cli/ui/http_connections.h"

#include <event2/bufferevent.h>
#include <event2/listener.h>
#include <sys/socket.h>

#include <new>

namespace rowtide::cli::ui {
namespace {

constexpr std::size_t kConnectionsMax = 64;
constexpr std::chrono::seconds kPatience{20};
constexpr timeval kBetweenLooks{0, 250'000};

}  // namespace

HttpConnections::HttpConnections(event_base* base, evconnlistener* listener)
    : base_(base),
      listener_(listener),
      looks_(::event_new(
          base, -1, EV_PERSIST, [](evutil_socket_t, short, void* self) { static_cast<HttpConnections*>(self)->look(); },
          this)) {
  if (!looks_) throw std::bad_alloc();
}

HttpConnections::~HttpConnections() {
  for (const Connection& connection : connections_) ::bufferevent_decref(connection.buffers);
}

bufferevent* HttpConnections::add() noexcept {
  bufferevent* const buffers = ::bufferevent_socket_new(base_, -1, BEV_OPT_CLOSE_ON_FREE);
  if (buffers == nullptr) return nullptr;
  ::bufferevent_incref(buffers);
  connections_.push_back({buffers, Clock::now() + kPatience});
  if (connections_.size() == 1) ::event_add(looks_.get(), &kBetweenLooks);
  if (connections_.size() >= kConnectionsMax) ::evconnlistener_disable(listener_);
  return buffers;
}

/// evhttp tells nobody that a connection has ended, but takes its callbacks off the buffers when it frees them. The
/// socket stays open until the look after: closed at once with bytes unread, the kernel would take back the answer.
bool HttpConnections::is_over(Connection& connection) {
  if (connection.is_left) {
    ::bufferevent_decref(connection.buffers);
    return true;
  }
  bufferevent_event_cb of_evhttp = nullptr;
  ::bufferevent_getcb(connection.buffers, nullptr, nullptr, &of_evhttp, nullptr);
  connection.is_left = of_evhttp == nullptr;
  // evhttp then finds the other end gone, and ends the connection itself.
  if (Clock::now() > connection.until) ::shutdown(::bufferevent_getfd(connection.buffers), SHUT_RDWR);
  return false;
}

void HttpConnections::look() {
  std::erase_if(connections_, is_over);
  if (connections_.size() < kConnectionsMax) ::evconnlistener_enable(listener_);
  if (connections_.empty()) ::event_del(looks_.get());
}

}  // namespace rowtide::cli::ui
