// The page's server: what is a request, whose Host is taken, what goes back, and that nobody can hold it up.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <stdexcept>
#include <string>
#include <thread>

#include "cli/failure.h"
#include "cli/ui/descriptor.h"
#include "cli/ui/http_message.h"
#include "cli/ui/http_server.h"

namespace rowtide::cli::ui {
namespace {

TEST(UiHttp, AQueryIsTakenApart) {
  const auto query = parse_query("model=Qwen%203&path=a+b&kv=&x=%2Fy%3d%26&x=2");
  ASSERT_TRUE(query) << query.error().message;
  EXPECT_EQ(*query, (Query{{"model", "Qwen 3"}, {"path", "a b"}, {"kv", ""}, {"x", "/y=&"}, {"x", "2"}}));
  EXPECT_TRUE(parse_query("")->empty());
  EXPECT_EQ(parse_query("path=50%2500")->front().second, "50%00");
}

TEST(UiHttp, WhatIsNoQueryIsMalformed) {
  for (const std::string& text : {std::string("kv"), std::string("a=1&&b=2"), std::string("=1"),
                                  std::string("path=/a%00b"), std::string("path=/a%0ab"), std::string("path=/a%1Bb"),
                                  std::string("path=/a%7fb"), "path=/a" + std::string(1, '\0') + "b"}) {
    const auto query = parse_query(text);
    ASSERT_FALSE(query) << text;
    EXPECT_EQ(query.error().code, ErrorCode::kMalformed);
  }
}

TEST(UiHttp, HeadersAreFoundInAnyCase) {
  const HttpRequest request{"/", {}, {{"SEC-Fetch-Site", "same-origin"}}};
  EXPECT_EQ(request.header("sec-fetch-site"), "same-origin");
  EXPECT_EQ(request.header("cookie"), std::nullopt);
}

TEST(UiHttp, OnlyNamesOfThisMachineAreTakenForHost) {
  for (const char* host : {"localhost", "LocalHost:7698", "127.0.0.1", "127.0.0.1:1", "[::1]", "[::1]:8080"}) {
    EXPECT_TRUE(names_loopback(host)) << host;
  }
  for (const char* host :
       {"", "evil.example", "evil.example:7698", "localhost.evil.example", "127.0.0.1.evil.example",
        "127.0.0.1:", "localhost:80x", "localhost:1:2", "::1", "[::1", "10.0.0.1:7698", "@localhost"}) {
    EXPECT_FALSE(names_loopback(host)) << host;
  }
}

/// A server on a free port, whose handler says the path back, N times for /path?n=N.
class UiServer : public testing::Test {
 protected:
  UiServer()
      : server_(0), stop_(::eventfd(0, EFD_CLOEXEC)), thread_([this] {
          server_.serve(
              [](const HttpRequest& request) {
                if (request.path == "/fails") throw std::runtime_error("it fails");
                const std::size_t copies = request.query.empty() ? 1 : std::stoul(request.query[0].second);
                std::string body;
                for (std::size_t i = 0; i < copies; ++i) body += request.path;
                return HttpResponse{200, "text/html; charset=utf-8", body};
              },
              stop_.number());
        }) {}
  ~UiServer() override {
    const std::uint64_t one = 1;
    EXPECT_EQ(::write(stop_.number(), &one, sizeof one), 8);
    thread_.join();
  }

  Descriptor connected() const {
    Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(server_.port());
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(socket.number(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    return socket;
  }

  static void send(const Descriptor& socket, std::string_view text) {
    EXPECT_EQ(::send(socket.number(), text.data(), text.size(), MSG_NOSIGNAL), static_cast<ssize_t>(text.size()));
  }

  /// All that comes until the server closes; "" after so much silence.
  static std::string received(const Descriptor& socket, int patience_ms = 5000) {
    std::string text;
    std::array<char, 4096> buffer{};
    pollfd entry{socket.number(), POLLIN, 0};
    while (::poll(&entry, 1, patience_ms) == 1) {
      const ssize_t count = ::recv(socket.number(), buffer.data(), buffer.size(), 0);
      if (count <= 0) return text;
      text.append(buffer.data(), static_cast<std::size_t>(count));
    }
    return "";
  }

  HttpServer server_;
  Descriptor stop_;
  std::thread thread_;
};

TEST_F(UiServer, ARequestInPiecesIsAnswered) {
  const Descriptor socket = connected();
  for (const char* piece : {"GET /a", "bc HTTP/1.1\r\nHo", "st: localhost\r\n\r", "\n"}) {
    send(socket, piece);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_TRUE(received(socket).ends_with("\r\n\r\n/abc"));
}

TEST_F(UiServer, OneWhoSendsNothingKeepsNobodyWaiting) {
  const Descriptor silent = connected();
  const Descriptor halfway = connected();
  send(halfway, "GET / HTTP/1.1\r\n");
  const Descriptor socket = connected();
  send(socket, "GET /x HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
  EXPECT_TRUE(received(socket).ends_with("/x"));
}

TEST_F(UiServer, RefusesWhatIsNotForIt) {
  const std::string host = "Host: localhost\r\n\r\n";
  const std::string long_text(std::size_t{16} << 10, 'x');
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n", "HTTP/1.1 403 "},
      {"GET http://localhost/ HTTP/1.1\r\n" + host, "HTTP/1.1 400 "},
      {"GET //localhost/ HTTP/1.1\r\n" + host, "HTTP/1.1 400 "},
      {"GET localhost HTTP/1.1\r\n" + host, "HTTP/1.1 400 "},
      {"GET / HTTP/1.1\r\n\r\n", "HTTP/1.1 400 "},
      {"GET / HTTP/1.1\r\nHost: localhost\r\nHOST: localhost\r\n\r\n", "HTTP/1.1 400 "},
      {"GET /?path=/a%00b HTTP/1.1\r\n" + host, "HTTP/1.1 400 "},
      {"GET /?path=/a" + std::string(1, '\0') + "b HTTP/1.1\r\n" + host, "HTTP/1.1 400 "},
      {"GET / HTTP/2.0\r\n" + host, "HTTP/1.1 400 "},
      {"GET /\r\n" + host, "HTTP/1.1 400 "},
      {"nonsense\r\n\r\n", "HTTP/1.1 400 "},
      {"GET / HTTP/1.1\r\nno colon\r\n" + host, "HTTP/1.1 400 "},
      {"GET / HTTP/1.1\r\nX: " + long_text + "\r\n" + host, "HTTP/1.1 400 "},
      {"POST / HTTP/1.1\r\n" + host, "HTTP/1.1 405 "},
      {"POST / HTTP/1.1\r\nContent-Length: 3\r\nHost: localhost\r\n\r\nabc", "HTTP/1.1 413 "},
      {"GET / HTTP/1.1\r\nContent-Length: 3\r\nHost: localhost\r\n\r\nabc", "HTTP/1.1 413 "},
      {"GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nHost: localhost\r\n\r\n3\r\nabc\r\n0\r\n\r\n", "HTTP/1.1 413 "},
      {"get / HTTP/1.1\r\n" + host, "HTTP/1.1 501 "},
      {"GET /fails HTTP/1.1\r\n" + host, "HTTP/1.1 500 "},
  };
  for (const auto& [request, status] : cases) {
    const Descriptor socket = connected();
    send(socket, request);
    const std::string text = received(socket);
    EXPECT_TRUE(text.starts_with(status)) << request << "\n" << text;
  }
}

TEST_F(UiServer, AnAnswerKeepsTheBrowserToThisServer) {
  const Descriptor socket = connected();
  send(socket, "GET /rows HTTP/1.1\r\nHost: localhost\r\nConnection: keep-alive\r\n\r\n");
  const std::string text = received(socket);
  EXPECT_TRUE(text.starts_with("HTTP/1.1 200 OK\r\n"));
  for (const char* words : {"default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "nosniff", "no-store",
                            "Content-Length: 5\r\n", "Content-Type: text/html; charset=utf-8\r\n"}) {
    EXPECT_NE(text.find(words), std::string::npos) << words;
  }
  EXPECT_EQ(text.find("Access-Control"), std::string::npos);
  EXPECT_TRUE(text.ends_with("\r\n\r\n/rows"));
}

TEST_F(UiServer, ALongAnswerArrivesWhole) {
  const Descriptor socket = connected();
  send(socket, "GET /rows?n=2000000 HTTP/1.1\r\nHost: localhost\r\n\r\n");
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // more of it than the kernel holds for us
  const std::string text = received(socket);
  EXPECT_EQ(text.size() - text.find("\r\n\r\n") - 4, 5 * 2'000'000);
}

TEST_F(UiServer, OneWhoDoesNotTakeTheAnswerHarmsNobody) {
  {
    const Descriptor socket = connected();
    send(socket, "GET /rows?n=2000000 HTTP/1.1\r\nHost: localhost\r\n\r\n");
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }  // the server writes on
  const Descriptor socket = connected();
  send(socket, "GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_TRUE(received(socket).ends_with("/x"));
}

TEST_F(UiServer, AtSixtyFourConnectionsOthersWaitUntilSomeAreOver) {
  std::vector<Descriptor> silent;
  for (int i = 0; i < 64; ++i) silent.push_back(connected());
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  const Descriptor socket = connected();
  send(socket, "GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_EQ(received(socket, 600), "");
  silent.resize(60);
  EXPECT_TRUE(received(socket).ends_with("/x"));
}

TEST_F(UiServer, HeadHasNoBody) {
  const Descriptor socket = connected();
  send(socket, "HEAD /abc HTTP/1.1\r\nHost: localhost\r\n\r\n");
  const std::string text = received(socket);
  EXPECT_NE(text.find("Content-Length: 4\r\n"), std::string::npos);
  EXPECT_TRUE(text.ends_with("\r\n\r\n"));
}

TEST_F(UiServer, ATakenPortNamesTheOption) {
  try {
    HttpServer second(server_.port());
    FAIL() << "it listens there too";
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.exit_code(), kExitFailed);
    EXPECT_NE(std::string(failure.what()).find("--port"), std::string::npos);
  }
}

}  // namespace
}  // namespace rowtide::cli::ui
