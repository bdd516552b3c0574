// Limits on connections that evhttp of libevent 2.1 lacks: how many there are, and how long one may last.
#pragma once

#include <event2/event.h>

#include <chrono>
#include <memory>
#include <vector>

struct bufferevent;
struct evconnlistener;

namespace rowtide::cli::ui {

/// libevent's objects with an owner: its C functions that free them.
template <auto kFree>
struct FreeBy {
  void operator()(auto* object) const { kFree(object); }
};
using EventBase = std::unique_ptr<event_base, FreeBy<::event_base_free>>;
using Event = std::unique_ptr<event, FreeBy<::event_free>>;

/// The connections of one evhttp. Each has seconds for its request and for the answer to be taken, however it spends
/// them, and at 64 no more are accepted until one is over, so that nobody can hold the server up for good. (A few more
/// where they come at once: the listener takes all that wait in its queue.)
class HttpConnections {
 public:
  /// Made before the evhttp that accepts from `listener`, and destroyed after it.
  HttpConnections(event_base* base, evconnlistener* listener);
  ~HttpConnections();
  HttpConnections(const HttpConnections&) = delete;
  HttpConnections& operator=(const HttpConnections&) = delete;

  /// The buffers of a new connection, for evhttp to own; null where there is no memory.
  bufferevent* add() noexcept;

 private:
  using Clock = std::chrono::steady_clock;
  struct Connection {
    bufferevent* buffers;  // one reference is ours
    Clock::time_point until;
    bool is_left = false;  // by evhttp, at the last look
  };

  static bool is_over(Connection& connection);
  void look();

  event_base* base_;
  evconnlistener* listener_;
  Event looks_;
  std::vector<Connection> connections_;
};

}  // namespace rowtide::cli::ui
