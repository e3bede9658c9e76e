// The bytes of one client's connection: in and out, each with its limit of time, and word when the client leaves.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <memory>
#include <string>
#include <string_view>

#include "base/clock.h"

namespace cadans::serve {

/// Private to the server. Held by a shared pointer, which all that waits for the socket shares. Thread rule: the one
/// that runs `io`.
class Line : public std::enable_shared_from_this<Line> {
  public:
    Line(boost::asio::io_context& io, boost::asio::ip::tcp::socket socket);

    boost::asio::ip::tcp::socket& socket() noexcept { return socket_; }
    boost::beast::flat_buffer& buffer() noexcept { return buffer_; }  ///< came in, not read yet
    std::string local_address() const;

    boost::asio::awaitable<bool> read_some();  ///< appends to buffer(); false: nothing more comes

    /// False: the client took it not, or not within `limit` a time. `waited`: it did not go out at once.
    boost::asio::awaitable<bool> send(std::string_view bytes, Nanos limit, bool* waited = nullptr);
    boost::asio::awaitable<void> linger();  ///< ends its own side, then reads what comes until the client has too

    boost::asio::awaitable<void> wait(Nanos at_most);  ///< until wake()
    void wake() { signal_.cancel(); }

    /// From now on gone() tells that the client left, and wakes whoever waits. What it sends meanwhile is kept.
    void watch();
    boost::asio::awaitable<void> stop_watching();
    bool gone() const noexcept { return gone_; }

    void arm(Nanos limit);  ///< the current socket operation is cancelled after it
    void disarm();
    bool timed_out() const noexcept { return timed_out_; }

    void close();

  private:
    boost::asio::ip::tcp::socket socket_;
    boost::beast::flat_buffer buffer_;
    boost::asio::steady_timer deadline_, signal_;
    uint64_t deadline_turn_ = 0;
    bool timed_out_ = false;
    bool watching_ = false, want_watch_ = false;
    bool gone_ = false;
};

}  // namespace cadans::serve
