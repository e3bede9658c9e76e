#include "serve/http/connection.h"

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
constexpr Nanos kLandingAtMost = 30 * kNanosPerSecond;  // a step takes less
constexpr Nanos kFeedEvery = kNanosPerSecond / 4;
constexpr size_t kInlineBody = 32 << 10;  // larger bodies are parsed on the text thread

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
    : core_(core), line_(std::make_shared<Line>(core.io, std::move(socket))), local_address_(line_->local_address()) {
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
    co_await line_->stop_watching();
    line_->close();
}

void Connection::close() {
    closing_ = true;
    line_->close();
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
    line_->arm(line_->buffer().size() > 0 ? core_.options.limits.head : core_.options.limits.idle);
    for (;;) {
        std::string_view bytes(static_cast<const char*>(line_->buffer().data().data()), line_->buffer().size());
        while (bytes.starts_with("\r\n")) {  // some clients end a body with a line of its own
            line_->buffer().consume(2);
            bytes.remove_prefix(2);
        }
        if (const auto fault = early_fault(bytes, core_.options.limits)) {
            line_->disarm();
            co_await send_fault(fault->status, fault->message);
            co_return false;
        }
        if (const size_t end = bytes.find("\r\n\r\n"); end != std::string_view::npos) {
            line_->disarm();
            head = bytes.substr(0, end + 4);
            co_return true;
        }
        const bool first = bytes.empty();
        const bool came = co_await line_->read_some();
        if (!came) {
            line_->disarm();
            if (line_->timed_out() && !first) co_await send_fault(408, "the header did not come in time");
            co_return false;
        }
        if (first) line_->arm(core_.options.limits.head);
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
    line_->buffer().consume(used);
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
        if (!stays) co_await line_->linger();
        co_return sent&& stays ? Next::keep : Next::close;
    }
    if (has_body) {
        const std::string_view expect = request.field("expect");
        if (!expect.empty() && !boost::beast::iequals(expect, "100-continue")) {
            co_await send_fault(417, "only 100-continue can be expected");
            co_return Next::close;
        }
        if (!expect.empty() && !http_1_0_) co_await send("HTTP/1.1 100 Continue\r\n\r\n");
        line_->arm(core_.options.limits.body);
        const auto [failure, count] = co_await http::async_read(line_->socket(), line_->buffer(), parser, kResult);
        line_->disarm();
        if (failure) {
            if (failure == http::error::body_limit)
                co_await send_fault(413, "the body is too large");
            else if (line_->timed_out())
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
        co_return line_->gone() ? Next::close : next;
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
    generation->on_change = [this] { line_->wake(); };
    line_->watch();
    Next next = Next::close;
    if (generation->streams())
        next = co_await stream(request, *generation, keep);
    else
        next = co_await wait_and_reply(request, *generation, keep);
    generation_ = nullptr;
    co_await line_->stop_watching();
    co_return line_->gone() ? Next::close : next;
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
            self->line_->wake();
        });
    });
    while (!made) co_await line_->wait(kNanosPerSecond);
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
    while (sent && !line_->gone()) {
        out.clear();
        generation.write_ready(out);
        const bool ending = out.empty() && generation.complete();
        const Nanos now = steady_now();
        if (ending)
            generation.write_end(out);
        else if (out.empty() && now - last_sent >= every)
            generation.write_idle(out);
        if (out.empty()) {
            co_await line_->wait(last_sent + every - now);
            continue;
        }
        std::string bytes = http_1_0_ ? out : chunk(out);
        if (ending && !http_1_0_) bytes += "0\r\n\r\n";
        bool waited = false;
        const Nanos begin = steady_now();
        sent = co_await send(bytes, &waited);
        if (ending) co_return sent&& keep ? Next::keep : Next::close;
        last_sent = steady_now();
        if (sent)
            generation.flushed(begin, last_sent, waited);
        else if (waited)
            generation.not_taken(begin, last_sent);
    }
    co_await abandon(generation);
    co_return Next::close;
}

asio::awaitable<void> Connection::abandon(Generation& generation) {
    const Nanos patience = steady_now() + kLandingAtMost;
    generation.leave();
    while (!generation.landed() && steady_now() < patience) co_await line_->wait(kNanosPerSecond);
    generation.abandon();
}

asio::awaitable<Connection::Next> Connection::stream(const HttpRequest& request, Feed& feed) {
    HttpReply shape{.content_type = "text/event-stream", .body = {}};
    shape.fields.emplace_back("X-Accel-Buffering", "no");
    core_.gate.add_origin_fields(request, shape);
    std::string head = reply_head(shape, request.id, false) + "\r\n";
    bool sent = co_await send(head);
    if (request.method == "HEAD") co_return Next::close;
    line_->watch();
    std::string out;
    while (sent && !line_->gone() && !closing_) {
        out.clear();
        feed.write(out);
        sent = co_await send(out);
        if (sent && !line_->gone() && !closing_) co_await line_->wait(kFeedEvery);
    }
    co_await line_->stop_watching();
    co_return Next::close;
}

asio::awaitable<Connection::Next> Connection::wait_and_reply(const HttpRequest& request, Generation& generation,
                                                             bool keep) {
    while (!generation.complete() && !line_->gone()) co_await line_->wait(3600 * kNanosPerSecond);
    if (line_->gone()) {
        co_await abandon(generation);
        co_return Next::close;
    }
    HttpReply reply = generation.reply();
    core_.gate.add_origin_fields(request, reply);
    const bool sent = co_await send_reply(request, std::move(reply), keep);
    co_return sent&& keep ? Next::keep : Next::close;
}

asio::awaitable<Connection::Next> Connection::wait_and_reply(const HttpRequest& request, Preload& preload, bool keep) {
    preload.on_change = [this] { line_->wake(); };
    line_->watch();
    preload.begin(*core_.keeper);
    while (!preload.over() && !line_->gone()) co_await line_->wait(3600 * kNanosPerSecond);
    co_await line_->stop_watching();
    if (line_->gone()) co_return Next::close;
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
    if (sent) co_await line_->linger();
}

asio::awaitable<bool> Connection::send(std::string_view bytes, bool* waited) {
    const bool sent = co_await line_->send(bytes, core_.options.limits.write, waited);
    co_return sent;
}

}  // namespace cadans::serve
