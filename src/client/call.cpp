#include "client/call.h"

#include <array>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <charconv>
#include <chrono>

namespace cadans::client {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using boost::system::error_code;

namespace {

constexpr auto kResult = asio::as_tuple(asio::use_awaitable);
using OnPiece = std::function<bool(std::string_view)>;  ///< false: enough

/// One call's way through its sockets.
class Way {
  public:
    Way(const Url& url, const Request& request) : url_(url), request_(request) {}

    asio::awaitable<Result<Reply>> run(const OnPiece& on_piece) {
        beast::tcp_stream stream(co_await asio::this_coro::executor);
        if (const error_code failure = co_await connect(stream)) co_return nobody(failure);
        http::request<http::string_body> message(http::string_to_verb(request_.method), url_.path + request_.path, 11);
        message.set(http::field::host, url_.authority());
        for (const auto& [name, value] : request_.fields) message.set(name, value);
        message.body() = request_.body;
        if (!request_.body.empty() || request_.method == "POST") message.prepare_payload();
        arm(stream);
        const auto [unsent, sent] = co_await http::async_write(stream, message, kResult);
        if (unsent) co_return broken(unsent);

        beast::flat_buffer buffer;
        http::response_parser<http::buffer_body> parser;
        parser.body_limit(boost::none);
        arm(stream);
        const auto [unheard, head] = co_await http::async_read_header(stream, buffer, parser, kResult);
        if (unheard) co_return broken(unheard);
        Reply reply;
        reply.status = static_cast<int>(parser.get().result_int());
        reply.content_type = std::string(parser.get()[http::field::content_type]);
        std::array<char, 16 << 10> piece;
        while (!parser.is_done()) {
            parser.get().body().data = piece.data();
            parser.get().body().size = piece.size();
            arm(stream);
            auto [failure, count] = co_await http::async_read_some(stream, buffer, parser, kResult);
            if (failure == http::error::need_buffer) failure = {};
            const std::string_view bytes(piece.data(), piece.size() - parser.get().body().size);
            if (reply.status != 200 || !on_piece) {
                reply.body += bytes;
            } else if (!bytes.empty() && !on_piece(bytes)) {
                co_return reply;
            }
            if (failure) co_return broken(failure);
        }
        co_return reply;
    }

  private:
    asio::awaitable<error_code> connect(beast::tcp_stream& stream) {
        asio::ip::tcp::resolver resolver(co_await asio::this_coro::executor);
        auto [unknown, places] = co_await resolver.async_resolve(url_.host, std::to_string(url_.port), kResult);
        if (unknown) co_return unknown;
        arm(stream);
        auto [failure, endpoint] = co_await stream.async_connect(places, kResult);
        if (!failure) stream.socket().set_option(asio::ip::tcp::no_delay(true), failure);
        co_return failure;
    }

    void arm(beast::tcp_stream& stream) const { stream.expires_after(std::chrono::nanoseconds(request_.patience)); }

    Error nobody(const error_code& failure) const {
        return {ErrorCode::unavailable, "no server answers at http://" + url_.authority() + ": " + failure.message(),
                url_.authority()};
    }
    Error broken(const error_code& failure) const {
        const bool late = failure == beast::error::timeout;
        return {ErrorCode::io,
                "http://" + url_.authority() + (late ? " did not go on in time" : ": " + failure.message()),
                url_.authority()};
    }

    const Url& url_;
    const Request& request_;
};

Result<Reply> run(const Url& url, const Request& request, const OnPiece& on_piece) {
    asio::io_context io(1);
    Way way(url, request);
    Result<Reply> out =
        Error{ErrorCode::io, "http://" + url.authority() + " was no longer waited for", url.authority()};
    asio::co_spawn(
        io, [&]() -> asio::awaitable<void> { out = co_await way.run(on_piece); }, asio::detached);
    const std::stop_callback leave(request.stop, [&io] { io.stop(); });
    io.run();
    return out;
}

}  // namespace

std::string Url::authority() const {
    const std::string name = host.find(':') == std::string::npos ? host : "[" + host + "]";
    return port == 80 ? name : name + ":" + std::to_string(port);
}

Result<Url> parse_url(std::string_view text) {
    const std::string whole(text);
    const auto bad = [&](const char* why) { return bad_input("'" + whole + "' is no address: " + why, whole); };
    if (text.starts_with("https://"))
        return Error{
            ErrorCode::unsupported,
            "'" + whole + "': only http is spoken here; put a proxy such as stunnel or nginx before an https server",
            whole};
    if (text.starts_with("http://"))
        text.remove_prefix(7);
    else if (text.find("://") != std::string_view::npos)
        return bad("it must begin with http://");
    Url url;
    const size_t slash = std::min(text.find('/'), text.size());
    std::string_view place = text.substr(0, slash);
    url.path = std::string(text.substr(slash));
    while (url.path.ends_with('/')) url.path.pop_back();
    size_t colon = place.rfind(':');
    if (place.starts_with('[')) {
        const size_t end = place.find(']');
        if (end == std::string_view::npos) return bad("a bracket is not closed");
        url.host = std::string(place.substr(1, end - 1));
        colon = place.find(':', end);
    } else {
        url.host = std::string(place.substr(0, colon));
    }
    if (url.host.empty()) return bad("it names no host");
    if (colon != std::string_view::npos) {
        const std::string_view digits = place.substr(colon + 1);
        const auto [end, trouble] = std::from_chars(digits.data(), digits.data() + digits.size(), url.port);
        if (trouble != std::errc() || end != digits.data() + digits.size() || url.port == 0)
            return bad("the port is no number from 1 to 65535");
    }
    return url;
}

Result<Reply> call(const Url& url, const Request& request) { return run(url, request, nullptr); }

Result<Reply> call_lines(const Url& url, const Request& request, const std::function<bool(std::string_view)>& on_line) {
    std::string rest;
    const auto give = [&](std::string_view line) {
        if (line.ends_with('\r')) line.remove_suffix(1);
        return on_line(line);
    };
    auto reply = run(url, request, [&](std::string_view bytes) {
        for (size_t end = bytes.find('\n'); end != std::string_view::npos; end = bytes.find('\n')) {
            bool go_on = true;
            if (rest.empty()) {
                go_on = give(bytes.substr(0, end));
            } else {
                rest += bytes.substr(0, end);
                go_on = give(rest);
                rest.clear();
            }
            if (!go_on) return false;
            bytes.remove_prefix(end + 1);
        }
        rest += bytes;
        return true;
    });
    if (reply && !rest.empty()) give(rest);
    return reply;
}

}  // namespace cadans::client
