// The page's server: what is a request, whose Host is taken, what goes back, and that nobody can hold it up.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <string>
#include <thread>

#include "cli/failure.h"
#include "cli/ui/descriptor.h"
#include "cli/ui/http_message.h"
#include "cli/ui/http_server.h"

namespace rowtide::cli::ui {
namespace {

using Pairs = std::vector<std::pair<std::string, std::string>>;

TEST(UiHttp, ARequestIsTakenApart) {
  const auto request = parse_http_request(
      "GET /api/plan?model=Qwen%203&path=a+b&kv&&x=%2Fy%3d%26 HTTP/1.1\r\nHost: localhost:7698\r\n"
      "SEC-Fetch-Site:  same-origin \r\n\r\n");
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_EQ(request->method, "GET");
  EXPECT_EQ(request->path, "/api/plan");
  EXPECT_EQ(request->query, (Pairs{{"model", "Qwen 3"}, {"path", "a b"}, {"kv", ""}, {"x", "/y=&"}}));
  EXPECT_EQ(request->header("sec-fetch-site"), "same-origin");
  EXPECT_EQ(request->header("cookie"), std::nullopt);
}

TEST(UiHttp, WhatIsNoRequestIsMalformed) {
  const std::string host = "Host: localhost\r\n\r\n";
  for (const std::string& text :
       {std::string(), std::string("\r\n\r\n"), "GET / HTTP/2.0\r\n" + host, "GET /\r\n" + host,
        "get / HTTP/1.1\r\n" + host, "GET http://localhost/ HTTP/1.1\r\n" + host, "GET  / HTTP/1.1\r\n" + host,
        "GET / HTTP/1.1 \r\n" + host, "GET /?a=%4 HTTP/1.1\r\n" + host, "GET /?a=%zz HTTP/1.1\r\n" + host,
        "GET /?path=/a%00b HTTP/1.1\r\n" + host, "GET /?path=/a" + std::string(1, '\0') + "b HTTP/1.1\r\n" + host,
        std::string("GET / HTTP/1.1\r\n\r\n"), "GET / HTTP/1.1\r\nHost: localhost\r\n" + host,
        "GET / HTTP/1.1\r\n continued\r\n" + host, "GET / HTTP/1.1\r\nna me: x\r\n" + host,
        "GET / HTTP/1.1\r\nno colon\r\n" + host}) {
    const auto request = parse_http_request(text);
    ASSERT_FALSE(request) << text;
    EXPECT_EQ(request.error().code, ErrorCode::kMalformed);
  }
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

TEST(UiHttp, AnAnswerKeepsTheBrowserToThisServer) {
  const HttpResponse response{200, "text/html; charset=utf-8", "<p>rows</p>"};
  const std::string text = http_text(response, true);
  EXPECT_TRUE(text.starts_with("HTTP/1.1 200 OK\r\n"));
  for (const char* words : {"default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "nosniff",
                            "Content-Length: 11\r\n", "Content-Type: text/html; charset=utf-8\r\n"}) {
    EXPECT_NE(text.find(words), std::string::npos) << words;
  }
  EXPECT_EQ(text.find("Access-Control"), std::string::npos);
  EXPECT_TRUE(text.ends_with("\r\n\r\n<p>rows</p>"));
  EXPECT_TRUE(http_text(response, false).ends_with("\r\n\r\n"));
}

/// A server on a free port, whose handler says the path back.
class UiServer : public testing::Test {
 protected:
  UiServer()
      : server_(0), stop_(::eventfd(0, EFD_CLOEXEC)), thread_([this] {
          server_.serve([](const HttpRequest& request) { return HttpResponse{200, "text/plain", request.path}; },
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

  /// All that comes until the server closes; "" after five seconds of silence.
  static std::string received(const Descriptor& socket) {
    std::string text;
    std::array<char, 4096> buffer{};
    pollfd entry{socket.number(), POLLIN, 0};
    while (::poll(&entry, 1, 5000) == 1) {
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
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n", "HTTP/1.1 403 "},
      {"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nabc", "HTTP/1.1 405 "},
      {"nonsense\r\n\r\n", "HTTP/1.1 400 "},
      {"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + std::string(kRequestBytesMax, 'x') + "\r\n\r\n", "HTTP/1.1 431 "},
  };
  for (const auto& [request, status] : cases) {
    const Descriptor socket = connected();
    send(socket, request);
    EXPECT_TRUE(received(socket).starts_with(status)) << status;
  }
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
