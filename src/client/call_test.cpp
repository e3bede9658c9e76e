#include "client/call.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <thread>

#include "base/clock.h"

namespace cadans::client {
namespace {

/// Accepts one connection, reads a header, sends these pieces with a pause between them.
class OneReply {
  public:
    explicit OneReply(std::vector<std::string> pieces, bool stay = false) {
        listener_ = ::socket(AF_INET, SOCK_STREAM, 0);
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        EXPECT_EQ(::bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
        ::listen(listener_, 1);
        socklen_t size = sizeof address;
        ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
        url_.host = "127.0.0.1";
        url_.port = ntohs(address.sin_port);
        thread_ = std::jthread([this, pieces = std::move(pieces), stay] { serve(pieces, stay); });
    }
    ~OneReply() {
        thread_.join();
        ::close(listener_);
    }
    const Url& url() const { return url_; }
    std::string heard;

  private:
    void serve(const std::vector<std::string>& pieces, bool stay) {
        const int line = ::accept(listener_, nullptr, nullptr);
        char bytes[4096];
        while (heard.find("\r\n\r\n") == std::string::npos) {
            const ssize_t count = ::read(line, bytes, sizeof bytes);
            if (count <= 0) break;
            heard.append(bytes, static_cast<size_t>(count));
        }
        for (const std::string& piece : pieces) {
            (void)!::send(line, piece.data(), piece.size(), MSG_NOSIGNAL);
            ::usleep(5000);
        }
        while (stay && ::read(line, bytes, sizeof bytes) > 0) {
        }
        ::close(line);
    }

    int listener_ = -1;
    Url url_;
    std::jthread thread_;
};

TEST(parse_url, knows_host_port_and_path) {
    const Url url = *parse_url("http://[::1]:8080/prefix/");
    EXPECT_EQ(url.host, "::1");
    EXPECT_EQ(url.port, 8080);
    EXPECT_EQ(url.path, "/prefix");
    EXPECT_EQ(url.authority(), "[::1]:8080");
    EXPECT_EQ(parse_url("localhost:11435")->port, 11435);
    EXPECT_EQ(parse_url("http://example.test")->authority(), "example.test");
}

TEST(parse_url, refuses_what_is_none) {
    for (const char* bad :
         {"", "http://", "ftp://a", "http://a:0", "http://a:65536", "http://a:x", "http://[::1", ":80"})
        EXPECT_EQ(parse_url(bad).error().code, ErrorCode::bad_input) << bad;
    EXPECT_EQ(parse_url("https://a").error().code, ErrorCode::unsupported);
}

TEST(call, gives_status_and_body) {
    OneReply server({"HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\nContent-Type: text/x\r\n\r\nnone"});
    const auto reply = call(server.url(), {.path = "/there?x=1", .fields = {{"X-A", "b"}}});
    ASSERT_TRUE(reply);
    EXPECT_EQ(reply->status, 404);
    EXPECT_EQ(reply->body, "none");
    EXPECT_EQ(reply->content_type, "text/x");
    EXPECT_NE(server.heard.find("GET /there?x=1 HTTP/1.1\r\n"), std::string::npos);
    EXPECT_NE(server.heard.find("X-A: b\r\n"), std::string::npos);
}

TEST(call_lines, gives_each_line_however_it_is_cut) {
    OneReply server({"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n", "6\r\n\r\ntwo\n\r\n",
                     "9\r\nthree\nfou\r\n1\r\nr\r\n0\r\n\r\n"});
    std::vector<std::string> lines;
    const auto reply = call_lines(server.url(), {.path = "/"}, [&](std::string_view line) {
        lines.emplace_back(line);
        return true;
    });
    ASSERT_TRUE(reply);
    EXPECT_EQ(lines, (std::vector<std::string>{"one", "two", "three", "four"}));
}

TEST(call_lines, hangs_up_when_it_has_heard_enough) {
    OneReply server({"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\none\ntwo\n"}, true);
    int lines = 0;
    EXPECT_TRUE(call_lines(server.url(), {.path = "/"}, [&](std::string_view) { return ++lines < 1; }));
    EXPECT_EQ(lines, 1);
}

TEST(call, nobody_there_is_said) {
    const auto reply = call({.host = "127.0.0.1", .port = 1, .path = {}}, {.path = "/"});
    ASSERT_FALSE(reply);
    EXPECT_EQ(reply.error().code, ErrorCode::unavailable);
}

TEST(call, a_server_that_says_nothing_is_not_waited_for) {
    OneReply server({}, true);
    const auto reply = call(server.url(), {.path = "/", .patience = 50 * kNanosPerMilli});
    ASSERT_FALSE(reply);
    EXPECT_EQ(reply.error().code, ErrorCode::io);
}

TEST(call, is_left_at_once_when_it_is_no_longer_wanted) {
    OneReply server({}, true);
    std::stop_source wanted;
    std::jthread leave([&] {
        ::usleep(50'000);
        wanted.request_stop();
    });
    const Nanos began = steady_now();
    const auto reply = call(server.url(), {.path = "/", .stop = wanted.get_token()});
    EXPECT_LT(steady_now() - began, 10 * kNanosPerSecond) << "its patience is 30 s";
    ASSERT_FALSE(reply);
    EXPECT_EQ(reply.error().code, ErrorCode::io);
}

TEST(call, a_line_that_breaks_is_an_error) {
    OneReply server({"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc"});
    EXPECT_EQ(call(server.url(), {.path = "/"}).error().code, ErrorCode::io);
}

}  // namespace
}  // namespace cadans::client
