// A client over real sockets that sends exactly the bytes it is told to.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cctype>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace cadans::serve {

struct TestReply {
    int status = 0;                             ///< 0: the line was closed without a reply
    std::map<std::string, std::string> fields;  ///< names in lower case
    std::string body;

    nlohmann::ordered_json json() const { return nlohmann::ordered_json::parse(body, nullptr, false); }

    /// The data of each SSE frame.
    std::vector<std::string> frames() const {
        std::vector<std::string> out;
        for (size_t at = 0; at < body.size();) {
            const size_t end = body.find("\n\n", at);
            const std::string block = body.substr(at, end - at);
            if (block.starts_with("data: ")) out.push_back(block.substr(6));
            if (end == std::string::npos) break;
            at = end + 2;
        }
        return out;
    }

    std::vector<std::string> lines() const {
        std::vector<std::string> out;
        for (size_t at = 0; at < body.size();) {
            const size_t end = body.find('\n', at);
            out.push_back(body.substr(at, end - at));
            if (end == std::string::npos) break;
            at = end + 1;
        }
        return out;
    }
};

class TestClient {
  public:
    explicit TestClient(uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_port = htons(port);
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        connected_ = ::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
    }
    ~TestClient() { close(); }
    TestClient(const TestClient&) = delete;
    TestClient& operator=(const TestClient&) = delete;

    bool connected() const { return connected_; }
    int descriptor() const { return socket_; }

    void close() {
        if (socket_ >= 0) ::close(socket_);
        socket_ = -1;
    }
    void half_close() { ::shutdown(socket_, SHUT_WR); }

    /// False: the other side has closed.
    bool send(std::string_view bytes) {
        while (!bytes.empty()) {
            const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
            if (sent <= 0) return false;
            bytes.remove_prefix(static_cast<size_t>(sent));
        }
        return true;
    }

    /// One reply, in order. `head`: it answers a HEAD request.
    TestReply read(bool head = false) {
        TestReply out;
        if (!until("\r\n\r\n")) return out;
        const size_t end = buffer_.find("\r\n\r\n");
        parse_head(buffer_.substr(0, end + 2), out);
        buffer_.erase(0, end + 4);
        if (out.status == 100) return read(head);
        if (head || out.status == 204 || out.status == 304) return out;
        if (out.fields["transfer-encoding"] == "chunked") {
            while (read_chunk(out.body)) {
            }
        } else if (out.fields.contains("content-length")) {
            const size_t length = std::strtoul(out.fields["content-length"].c_str(), nullptr, 10);
            while (buffer_.size() < length && more()) {
            }
            out.body = buffer_.substr(0, length);
            buffer_.erase(0, std::min(length, buffer_.size()));
        } else {
            while (more()) {
            }
            out.body = std::exchange(buffer_, {});
        }
        return out;
    }

    /// Reads until these bytes have come; what came is kept for read().
    bool until(std::string_view mark) {
        while (buffer_.find(mark) == std::string::npos)
            if (!more()) return false;
        return true;
    }

    const std::string& received() const { return buffer_; }

    /// True when the server closes within the time.
    bool closed_within(int milliseconds) {
        for (;;) {
            pollfd waits{socket_, POLLIN, 0};
            if (::poll(&waits, 1, milliseconds) <= 0) return false;
            char bytes[4096];
            const ssize_t count = ::recv(socket_, bytes, sizeof bytes, 0);
            if (count <= 0) return true;
            buffer_.append(bytes, static_cast<size_t>(count));
        }
    }

    static std::string request(std::string_view method, std::string_view path, std::string_view body = {},
                               std::string_view fields = {}) {
        std::string out = std::string(method) + " " + std::string(path) + " HTTP/1.1\r\nHost: 127.0.0.1\r\n";
        if (method == "POST") {
            if (fields.find("ontent-") == std::string_view::npos) out += "Content-Type: application/json\r\n";
            out += "Content-Length: " + std::to_string(body.size()) + "\r\n";
        }
        return out + std::string(fields) + "\r\n" + std::string(body);
    }

    TestReply exchange(std::string_view method, std::string_view path, std::string_view body = {},
                       std::string_view fields = {}) {
        if (!send(request(method, path, body, fields))) return {};
        return read(method == "HEAD");
    }

  private:
    bool more() {
        pollfd waits{socket_, POLLIN, 0};
        if (::poll(&waits, 1, 20'000) <= 0) return false;
        char bytes[16384];
        const ssize_t count = ::recv(socket_, bytes, sizeof bytes, 0);
        if (count <= 0) return false;
        buffer_.append(bytes, static_cast<size_t>(count));
        return true;
    }

    bool read_chunk(std::string& body) {
        if (!until("\r\n")) return false;
        const size_t line = buffer_.find("\r\n");
        const size_t length = std::strtoul(buffer_.substr(0, line).c_str(), nullptr, 16);
        buffer_.erase(0, line + 2);
        while (buffer_.size() < length + 2)
            if (!more()) return false;
        body += buffer_.substr(0, length);
        buffer_.erase(0, length + 2);
        return length > 0;
    }

    static void parse_head(const std::string& head, TestReply& out) {
        out.status = std::atoi(head.c_str() + head.find(' ') + 1);
        for (size_t at = head.find("\r\n") + 2; at < head.size();) {
            const size_t end = head.find("\r\n", at);
            const size_t colon = head.find(':', at);
            std::string name = head.substr(at, colon - at);
            for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
            out.fields[name] = head.substr(colon + 2, end - colon - 2);
            at = end + 2;
        }
    }

    int socket_;
    bool connected_ = false;
    std::string buffer_;
};

}  // namespace cadans::serve
