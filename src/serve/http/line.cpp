#include "serve/http/line.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <utility>

namespace cadans::serve {

namespace asio = boost::asio;

namespace {

constexpr auto kResult = asio::as_tuple(asio::use_awaitable);
constexpr size_t kPipelineBytes = 64 << 10;  // read ahead while a request is served; beyond it we stop looking

std::chrono::nanoseconds span(Nanos nanos) { return std::chrono::nanoseconds(nanos); }

// A peer that vanished without a word is found within 30 seconds.
void keep_alive(int socket) {
    const auto set = [&](int level, int name, int value) {
        (void)setsockopt(socket, level, name, &value, sizeof value);
    };
    set(SOL_SOCKET, SO_KEEPALIVE, 1);
    set(IPPROTO_TCP, TCP_KEEPIDLE, 10);
    set(IPPROTO_TCP, TCP_KEEPINTVL, 5);
    set(IPPROTO_TCP, TCP_KEEPCNT, 3);
    set(IPPROTO_TCP, TCP_USER_TIMEOUT, 30'000);
}

}  // namespace

Line::Line(asio::io_context& io, asio::ip::tcp::socket socket)
    : socket_(std::move(socket)), deadline_(io), signal_(io) {
    boost::system::error_code ignored;
    socket_.non_blocking(true, ignored);
    socket_.set_option(asio::ip::tcp::no_delay(true), ignored);
    keep_alive(socket_.native_handle());
}

std::string Line::local_address() const {
    boost::system::error_code ignored;
    asio::ip::address address = socket_.local_endpoint(ignored).address();
    if (address.is_v6() && address.to_v6().is_v4_mapped())
        address = asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6());
    return address.to_string();
}

asio::awaitable<bool> Line::read_some() {
    const auto [error, count] = co_await socket_.async_read_some(buffer_.prepare(16 << 10), kResult);
    if (error) co_return false;
    buffer_.commit(count);
    co_return true;
}

// Most replies fit the socket's buffer: then nothing waits, and the time of the flush is that of the call.
asio::awaitable<bool> Line::send(std::string_view bytes, Nanos limit, bool* waited) {
    while (!bytes.empty()) {
        boost::system::error_code error;
        size_t count = socket_.write_some(asio::buffer(bytes), error);
        if (error == asio::error::would_block) {
            if (waited != nullptr) *waited = true;
            if (gone_) co_return false;
            arm(limit);
            const auto [failure, taken] = co_await socket_.async_write_some(asio::buffer(bytes), kResult);
            disarm();
            if (failure) co_return false;
            count = taken;
        } else if (error) {
            co_return false;
        }
        bytes.remove_prefix(count);
    }
    co_return true;
}

// Closing with unread bytes would reset the line and take the reply with it.
asio::awaitable<void> Line::linger() {
    boost::system::error_code ignored;
    socket_.shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
    std::array<char, 16 << 10> waste{};
    arm(2 * kNanosPerSecond);
    for (size_t read = 0; read < (32 << 20);) {
        const auto [error, count] = co_await socket_.async_read_some(asio::buffer(waste), kResult);
        if (error) break;
        read += count;
    }
    disarm();
}

asio::awaitable<void> Line::wait(Nanos at_most) {
    signal_.expires_after(span(std::max<Nanos>(at_most, 0)));
    co_await signal_.async_wait(kResult);
}

void Line::watch() {
    want_watch_ = true;
    if (watching_ || gone_ || buffer_.size() >= kPipelineBytes) return;
    watching_ = true;
    socket_.async_read_some(buffer_.prepare(4096),
                            [self = shared_from_this()](boost::system::error_code error, size_t count) {
                                self->watching_ = false;
                                if (!error) {
                                    self->buffer_.commit(count);
                                    if (self->want_watch_) self->watch();
                                } else if (error != asio::error::operation_aborted || self->want_watch_) {
                                    self->gone_ = true;
                                    boost::system::error_code ignored;
                                    self->socket_.cancel(ignored);  // a write that waits for this client
                                }
                                if (!self->watching_) self->wake();
                            });
}

asio::awaitable<void> Line::stop_watching() {
    want_watch_ = false;
    if (!watching_) co_return;
    boost::system::error_code ignored;
    socket_.cancel(ignored);
    while (watching_) co_await wait(kNanosPerSecond);
}

void Line::arm(Nanos limit) {
    timed_out_ = false;
    const uint64_t turn = ++deadline_turn_;
    deadline_.expires_after(span(limit));
    deadline_.async_wait([self = shared_from_this(), turn](boost::system::error_code error) {
        if (error || turn != self->deadline_turn_) return;
        self->timed_out_ = true;
        boost::system::error_code ignored;
        self->socket_.cancel(ignored);
    });
}

void Line::disarm() {
    ++deadline_turn_;
    deadline_.cancel();
}

void Line::close() {
    gone_ = true;
    boost::system::error_code ignored;
    socket_.close(ignored);
    wake();
    disarm();
}

}  // namespace cadans::serve
