#include "serve/http/connection.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <array>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/http.hpp>
#include <cctype>

#include "base/clock.h"
#include "serve/dialects/form_fields.h"
#include "serve/http/reply_head.h"
#include "serve/http/request_head.h"

namespace cadans::serve {

namespace asio = boost::asio;
namespace http = boost::beast::http;

namespace {

constexpr auto kResult = asio::as_tuple(asio::use_awaitable);
constexpr size_t kPipelineBytes = 64 << 10;  // read ahead while a request is served; beyond it we stop looking
constexpr Nanos kFeedEvery = kNanosPerSecond / 4;
constexpr size_t kInlineBody = 32 << 10;  // larger bodies are parsed on the text thread

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

bool is_malformed(const boost::system::error_code& error) {
    const bool of_http = error.category() == http::make_error_code(http::error::bad_chunk).category();
    return of_http && error != http::error::partial_message && error != http::error::end_of_stream;
}

HttpReply made_safely(const Later& later) noexcept {
    try {
        return later();
    } catch (const std::exception&) {
        return error_reply({ErrorCode::no_memory, "not enough memory for this answer", {}}, Dialect::openai);
    }
}

HttpRequest to_request(const http::request<http::string_body>& message) {
    HttpRequest out;
    out.method = std::string(message.method_string());
    for (const auto& field : message) {
        std::string name(field.name_string());
        for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
        out.fields.emplace_back(std::move(name), std::string(field.value()));
    }
    return out;
}

}  // namespace

Connection::Connection(Server::Core& core, asio::ip::tcp::socket socket)
    : core_(core), socket_(std::move(socket)), deadline_(core.io), signal_(core.io) {
    boost::system::error_code ignored;
    socket_.non_blocking(true, ignored);
    socket_.set_option(asio::ip::tcp::no_delay(true), ignored);
    keep_alive(socket_.native_handle());
    asio::ip::address address = socket_.local_endpoint(ignored).address();
    if (address.is_v6() && address.to_v6().is_v4_mapped())
        address = asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6());
    local_address_ = address.to_string();
    core_.connections.insert(this);
}

Connection::~Connection() { core_.closed(*this); }

asio::awaitable<void> Connection::run() {
    const auto self = shared_from_this();
    try {
        while (!closing_) {
            std::string head;
            const bool whole = co_await read_head(head);
            if (!whole) break;
            serving_ = true;
            ++core_.serving;
            Next next = Next::close;
            try {
                next = co_await serve_one(head);
            } catch (...) {
                // Out of memory while this request was served: it alone pays.
                generation_ = nullptr;
            }
            serving_ = false;
            --core_.serving;
            core_.end_if_idle();
            if (next == Next::close) break;
        }
    } catch (...) {
    }
    co_await stop_watching();
    disarm();
    boost::system::error_code ignored;
    socket_.close(ignored);
}

void Connection::close() {
    closing_ = gone_ = true;
    boost::system::error_code ignored;
    socket_.close(ignored);
    signal_.cancel();
    disarm();
}

void Connection::close_when_idle() {
    closing_ = true;
    if (!serving_) close();
}

void Connection::fail_generation(const Error& error) {
    if (generation_ != nullptr) generation_->fail(error);
}

// False: nothing more comes, or what came was answered with a fault.
asio::awaitable<bool> Connection::read_head(std::string& head) {
    arm(buffer_.size() > 0 ? core_.options.limits.head : core_.options.limits.idle);
    for (;;) {
        std::string_view bytes(static_cast<const char*>(buffer_.data().data()), buffer_.size());
        while (bytes.starts_with("\r\n")) {  // some clients end a body with a line of its own
            buffer_.consume(2);
            bytes.remove_prefix(2);
        }
        if (const auto fault = early_fault(bytes, core_.options.limits)) {
            disarm();
            co_await send_fault(fault->status, fault->message);
            co_return false;
        }
        if (const size_t end = bytes.find("\r\n\r\n"); end != std::string_view::npos) {
            disarm();
            head = bytes.substr(0, end + 4);
            co_return true;
        }
        const bool first = bytes.empty();
        const auto [error, count] = co_await socket_.async_read_some(buffer_.prepare(16 << 10), kResult);
        if (error) {
            disarm();
            if (timed_out_ && !first) co_await send_fault(408, "the header did not come in time");
            co_return false;
        }
        buffer_.commit(count);
        if (first) arm(core_.options.limits.head);
    }
}

asio::awaitable<Connection::Next> Connection::serve_one(const std::string& head) {
    const Nanos accepted = steady_now();
    if (const auto fault = head_fault(head, core_.options.limits)) {
        co_await send_fault(fault->status, fault->message);
        co_return Next::close;
    }
    http::request_parser<http::string_body> parser;
    parser.header_limit(static_cast<uint32_t>(core_.options.limits.head_bytes + 1024));
    parser.body_limit(core_.options.limits.body_bytes);
    boost::system::error_code error;
    const size_t used = parser.put(asio::buffer(head), error);
    if (error && error != http::error::need_more) {
        const bool too_large = error == http::error::body_limit;
        co_await send_fault(too_large ? 413 : 400, too_large ? "the body is too large" : "this is not an HTTP request");
        co_return Next::close;
    }
    buffer_.consume(used);
    HttpRequest request = to_request(parser.get());
    request.accepted = accepted;
    request.id = fresh_id("req-");
    http_1_0_ = parser.get().version() < 11;
    const bool keep = parser.get().keep_alive() && !closing_;
    if (!split_target(std::string_view(parser.get().target()), request)) {
        co_await send_fault(400, "the request's target is malformed");
        co_return Next::close;
    }
    const bool has_body = parser.chunked() || parser.content_length().value_or(0) > 0;
    if (std::optional<HttpReply> refusal = core_.gate.refuse(request, local_address_)) {
        core_.gate.add_origin_fields(request, *refusal);
        const bool stays = keep && !has_body;
        const bool sent = co_await send_reply(request, *std::move(refusal), stays);
        if (!stays) co_await linger();
        co_return sent&& stays ? Next::keep : Next::close;
    }
    if (has_body) {
        const std::string_view expect = request.field("expect");
        if (!expect.empty() && !boost::beast::iequals(expect, "100-continue")) {
            co_await send_fault(417, "only 100-continue can be expected");
            co_return Next::close;
        }
        if (!expect.empty() && !http_1_0_) co_await send("HTTP/1.1 100 Continue\r\n\r\n");
        arm(core_.options.limits.body);
        const auto [failure, count] = co_await http::async_read(socket_, buffer_, parser, kResult);
        disarm();
        if (failure) {
            if (failure == http::error::body_limit)
                co_await send_fault(413, "the body is too large");
            else if (timed_out_)
                co_await send_fault(408, "the body did not come in time");
            else if (is_malformed(failure))
                co_await send_fault(400, "the body's chunks are malformed");
            co_return Next::close;
        }
        request.body = std::move(parser.get().body());
    }
    const Next next = co_await answer(std::move(request), keep);
    co_return next;
}

asio::awaitable<Connection::Next> Connection::answer(HttpRequest request, bool keep) {
    Opened opened = co_await open(request);
    if (Later* later = std::get_if<Later>(&opened)) {
        std::function<HttpReply()> make = [&] { return made_safely(*later); };
        HttpReply reply = co_await make_on(core_.history_thread, std::move(make));
        opened = std::move(reply);
    }
    if (HttpReply* reply = std::get_if<HttpReply>(&opened)) {
        core_.gate.add_origin_fields(request, *reply);
        const bool sent = co_await send_reply(request, std::move(*reply), keep);
        co_return sent&& keep ? Next::keep : Next::close;
    }
    if (const auto* feed = std::get_if<std::unique_ptr<Feed>>(&opened)) {
        const Next next = co_await stream(request, **feed);
        co_return next;
    }
    if (const auto* preload = std::get_if<std::unique_ptr<Preload>>(&opened)) {
        const Next next = co_await wait_and_reply(request, **preload, keep);
        co_return gone_ ? Next::close : next;
    }
    const std::unique_ptr<Generation> generation = std::get<std::unique_ptr<Generation>>(std::move(opened));
    request.id = generation->id();
    Status started = generation->start(*core_.flights, core_.house->inbox, *core_.keeper,
                                       {core_.metrics, core_.archive, core_.board, core_.spans});
    if (!started) {
        core_.metrics.count_refused();
        const Dialect dialect = dialect_of(request.path);
        const bool sent = co_await send_reply(request, error_reply(started.error(), dialect), keep);
        co_return sent&& keep ? Next::keep : Next::close;
    }
    generation_ = generation.get();
    generation->on_change = [this] { signal_.cancel(); };
    watch();
    Next next = Next::close;
    if (generation->streams())
        next = co_await stream(request, *generation, keep);
    else
        next = co_await wait_and_reply(request, *generation, keep);
    generation_ = nullptr;
    co_await stop_watching();
    co_return gone_ ? Next::close : next;
}

// Small bodies are read here and now; a large one, or one with a grammar to compile, must not hold up everybody's
// streams.
asio::awaitable<Opened> Connection::open(const HttpRequest& request) {
    const bool quick = request.body.size() < kInlineBody && !may_hold_a_form(request.body);
    if (request.method != "POST" || quick) co_return core_.doors.open(request);
    std::function<Opened()> make = [&] { return core_.doors.open(request); };
    Opened opened = co_await make_on(core_.text_thread, std::move(make));
    co_return opened;
}

// `make` runs on another thread; this one goes on serving others meanwhile.
template <class Made>
asio::awaitable<Made> Connection::make_on(asio::thread_pool& thread, std::function<Made()> make) {
    std::optional<Made> made;
    asio::post(thread, [&, self = shared_from_this()]() mutable {
        Made result = make();
        asio::post(core_.io, [&made, self = std::move(self), result = std::move(result)]() mutable {
            made.emplace(std::move(result));
            self->signal_.cancel();
        });
    });
    while (!made) co_await wait(kNanosPerSecond);
    co_return *std::move(made);
}

asio::awaitable<Connection::Next> Connection::stream(const HttpRequest& request, Generation& generation, bool keep) {
    HttpReply shape{.content_type = generation.stream_type(), .body = {}};
    shape.fields.emplace_back("X-Accel-Buffering", "no");
    generation.add_fields(shape);
    core_.gate.add_origin_fields(request, shape);
    keep = keep && !http_1_0_;
    std::string head = reply_head(shape, generation.id(), keep);
    if (!http_1_0_) append_field(head, "Transfer-Encoding", "chunked");
    head += "\r\n";
    bool sent = co_await send(head);
    const Nanos every = core_.options.comment_every > 0 ? core_.options.comment_every : 3600 * kNanosPerSecond;
    Nanos last_sent = steady_now();
    std::string out;
    while (sent && !gone_) {
        out.clear();
        generation.write_ready(out);
        const bool ending = out.empty() && generation.complete();
        const Nanos now = steady_now();
        if (ending)
            generation.write_end(out);
        else if (out.empty() && now - last_sent >= every)
            generation.write_idle(out);
        if (out.empty()) {
            co_await wait(last_sent + every - now);
            continue;
        }
        std::string bytes = http_1_0_ ? out : chunk(out);
        if (ending && !http_1_0_) bytes += "0\r\n\r\n";
        bool waited = false;
        sent = co_await send(bytes, &waited);
        if (ending) co_return sent&& keep ? Next::keep : Next::close;
        last_sent = steady_now();
        if (sent) generation.flushed(now, last_sent, waited);
    }
    generation.abandon();
    co_return Next::close;
}

asio::awaitable<Connection::Next> Connection::stream(const HttpRequest& request, Feed& feed) {
    HttpReply shape{.content_type = "text/event-stream", .body = {}};
    shape.fields.emplace_back("X-Accel-Buffering", "no");
    core_.gate.add_origin_fields(request, shape);
    std::string head = reply_head(shape, request.id, false) + "\r\n";
    bool sent = co_await send(head);
    if (request.method == "HEAD") co_return Next::close;
    watch();
    std::string out;
    while (sent && !gone_ && !closing_) {
        out.clear();
        feed.write(out);
        sent = co_await send(out);
        if (sent && !gone_ && !closing_) co_await wait(kFeedEvery);
    }
    co_await stop_watching();
    co_return Next::close;
}

asio::awaitable<Connection::Next> Connection::wait_and_reply(const HttpRequest& request, Generation& generation,
                                                             bool keep) {
    while (!generation.complete() && !gone_) co_await wait(3600 * kNanosPerSecond);
    if (gone_) {
        generation.abandon();
        co_return Next::close;
    }
    HttpReply reply = generation.reply();
    core_.gate.add_origin_fields(request, reply);
    const bool sent = co_await send_reply(request, std::move(reply), keep);
    co_return sent&& keep ? Next::keep : Next::close;
}

asio::awaitable<Connection::Next> Connection::wait_and_reply(const HttpRequest& request, Preload& preload, bool keep) {
    preload.on_change = [this] { signal_.cancel(); };
    watch();
    preload.begin(*core_.keeper);
    while (!preload.over() && !gone_) co_await wait(3600 * kNanosPerSecond);
    co_await stop_watching();
    if (gone_) co_return Next::close;
    HttpReply reply = preload.reply();
    core_.gate.add_origin_fields(request, reply);
    const bool sent = co_await send_reply(request, std::move(reply), keep);
    co_return sent&& keep ? Next::keep : Next::close;
}

asio::awaitable<bool> Connection::send_reply(const HttpRequest& request, HttpReply reply, bool keep) {
    std::string bytes = reply_head(reply, request.id, keep);
    if (reply.status != 204 && reply.status != 304)
        append_field(bytes, "Content-Length", std::to_string(reply.body.size()));
    bytes += "\r\n";
    if (request.method != "HEAD") bytes += reply.body;
    const bool sent = co_await send(bytes);
    co_return sent;
}

asio::awaitable<void> Connection::send_fault(int status, std::string_view message) {
    HttpReply reply;
    reply.status = status;
    reply.body = error_body({status == 413 ? ErrorCode::too_large : ErrorCode::bad_input, std::string(message), {}},
                            Dialect::openai);
    HttpRequest request;
    request.id = fresh_id("req-");
    const bool sent = co_await send_reply(request, std::move(reply), false);
    if (sent) co_await linger();
}

// Closing with unread bytes would reset the line and take the reply with it.
asio::awaitable<void> Connection::linger() {
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

// Most replies fit the socket's buffer: then nothing waits, and the time of the flush is that of the call.
asio::awaitable<bool> Connection::send(std::string_view bytes, bool* waited) {
    while (!bytes.empty()) {
        boost::system::error_code error;
        size_t count = socket_.write_some(asio::buffer(bytes), error);
        if (error == asio::error::would_block) {
            if (waited != nullptr) *waited = true;
            if (gone_) co_return false;
            arm(core_.options.limits.write);
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

asio::awaitable<void> Connection::wait(Nanos at_most) {
    signal_.expires_after(span(std::max<Nanos>(at_most, 0)));
    co_await signal_.async_wait(kResult);
}

void Connection::watch() {
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
                                if (!self->watching_) self->signal_.cancel();
                            });
}

asio::awaitable<void> Connection::stop_watching() {
    want_watch_ = false;
    if (!watching_) co_return;
    boost::system::error_code ignored;
    socket_.cancel(ignored);
    while (watching_) co_await wait(kNanosPerSecond);
}

void Connection::arm(Nanos limit) {
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

void Connection::disarm() {
    ++deadline_turn_;
    deadline_.cancel();
}

}  // namespace cadans::serve
