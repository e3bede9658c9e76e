#include "serve/http/server.h"

#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <future>
#include <new>

#include "base/check.h"
#include "serve/http/connection.h"
#include "serve/http/server_core.h"

namespace cadans::serve {

namespace asio = boost::asio;
using boost::system::error_code;

namespace {

constexpr auto kResult = asio::as_tuple(asio::use_awaitable);
constexpr std::chrono::seconds kLastWords{2};  ///< to a collector, when the server ends

/// Telling others of what was must not take time from those who compute. (The history's thread does not yield: a record
/// takes it some 30 µs, and somebody waits for what it answers.)
void yield_to_others() {
    constexpr int kPolitely = 10;
    (void)::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), kPolitely);  // of this thread alone
}

Error bind_error(const ServerOptions& options, const error_code& error) {
    const std::string place = options.host + ":" + std::to_string(options.port);
    if (error == asio::error::address_in_use)
        return {ErrorCode::io,
                "port " + std::to_string(options.port) + " on " + options.host +
                    " is in use, perhaps by another Cadans or Ollama: stop that one, or choose another port with "
                    "--port (0 takes any that is free)",
                place};
    if (error == asio::error::access_denied)
        return {ErrorCode::denied, "not permitted to listen on " + place + ": ports below 1024 need rights", place};
    return {ErrorCode::io, "cannot listen on " + place + ": " + error.message(), place};
}

}  // namespace

Server::Core::Core(ServerOptions chosen, metrics::Metrics& counted, std::optional<client::Url> collector)
    : options(std::move(chosen)),
      metrics(counted),
      archive(options.history, options.remembered_requests,
              [this](std::function<void()> work) { asio::post(history_thread, std::move(work)); }),
      spans(std::move(collector), [this](std::function<void()> work) { asio::post(export_thread, std::move(work)); }),
      gate(options),
      doors(options, readiness, metrics, archive, board, spans) {}

Server::Core::~Core() {
    text_thread.join();
    load_thread.join();
    history_thread.join();
    export_thread.join();
    error_code ignored;
    engine_events.close(ignored);
}

void Server::Core::end_exports() {
    std::promise<void> told;  // after all that was posted before
    asio::post(export_thread, [&told] { told.set_value(); });
    if (told.get_future().wait_for(kLastWords) == std::future_status::timeout) spans.give_up();
    export_thread.join();
}

Status Server::Core::bind() {
    error_code error;
    asio::ip::tcp::endpoint endpoint;
    std::string host = options.host;
    if (host.size() > 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
    const asio::ip::address literal = asio::ip::make_address(host, error);
    if (!error) {
        endpoint = {literal, options.port};
    } else {
        asio::ip::tcp::resolver resolver(io);
        const auto found =
            resolver.resolve(host, std::to_string(options.port), asio::ip::tcp::resolver::passive, error);
        if (error || found.empty()) return bad_input("the host \"" + options.host + "\" cannot be resolved", "--host");
        endpoint = found.begin()->endpoint();
    }
    acceptor.open(endpoint.protocol(), error);
    if (!error) acceptor.set_option(asio::socket_base::reuse_address(true), error);
    if (!error) acceptor.bind(endpoint, error);
    if (!error) acceptor.listen(1024, error);
    if (error) return bind_error(options, error);
    const asio::ip::tcp::endpoint bound = acceptor.local_endpoint();
    const std::string text = bound.address().to_string();
    address = "http://" + (bound.address().is_v6() ? "[" + text + "]" : text) + ":" + std::to_string(bound.port());
    event_fd = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (event_fd < 0) return Error{ErrorCode::io, "cannot make an event descriptor", {}};
    engine_events.assign(event_fd);
    return Ok{};
}

asio::awaitable<void> Server::Core::accept() {
    while (acceptor.is_open()) {
        auto [error, socket] = co_await acceptor.async_accept(kResult);
        if (!acceptor.is_open()) co_return;
        if (error) {  // out of descriptors: those who wait are served once some are free
            accept_pause.expires_after(std::chrono::milliseconds(50));
            co_await accept_pause.async_wait(kResult);
            continue;
        }
        if (connections.size() >= options.limits.connections) {
            constexpr std::string_view kFull =
                "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
            error_code ignored;
            socket.non_blocking(true, ignored);
            socket.write_some(asio::buffer(kFull), ignored);
            continue;
        }
        try {
            auto connection = std::make_shared<Connection>(*this, std::move(socket));
            asio::co_spawn(io, connection->run(), [connection](std::exception_ptr) {});
        } catch (const std::bad_alloc&) {
            // This client is turned away; the next one may find room.
        }
    }
}

asio::awaitable<void> Server::Core::hear_engine() {
    uint64_t count = 0;
    while (!finishing) {  // it may have finished before this began: a stop that came before run()
        const auto [error, bytes] = co_await engine_events.async_read_some(asio::buffer(&count, sizeof count), kResult);
        if (error) co_return;
        if (!flights || !house) continue;
        try {
            flights->take(house->fanout);
        } catch (const std::bad_alloc&) {
            check(false, "there is memory for the engine's events");  // else requests would wait for ever
        }
    }
}

void Server::Core::hear_signals() {
    signals.async_wait([this](error_code error, int) {
        if (error) return;
        if (readiness.draining)
            stop_all();
        else
            begin_drain();
        if (!finishing) hear_signals();  // a wait that nobody cancels would keep the loop running
    });
}

void Server::Core::begin_drain() {
    if (readiness.draining.exchange(true)) return;
    const std::set<Connection*> all = connections;
    for (Connection* connection : all) connection->close_when_idle();
    drain_timer.expires_after(std::chrono::nanoseconds(options.limits.drain));
    drain_timer.async_wait([this](error_code error) {
        if (!error) stop_all();
    });
    end_if_idle();
}

void Server::Core::stop_all() {
    if (finishing) return;
    readiness.draining = true;
    const std::set<Connection*> all = connections;
    for (Connection* connection : all) {
        connection->close_when_idle();
        connection->fail_generation({ErrorCode::unavailable, "the server is stopping: the answer is not complete", {}});
    }
    // A client that does not take its last frame is not waited for.
    force_timer.expires_after(std::chrono::seconds(1));
    force_timer.async_wait([this](error_code error) {
        if (!error) finish();
    });
    end_if_idle();
}

void Server::Core::end_if_idle() {
    if (readiness.draining && serving == 0) finish();
}

void Server::Core::finish() {
    if (finishing) return;
    finishing = true;
    error_code ignored;
    acceptor.close(ignored);
    signals.cancel(ignored);
    signals.clear(ignored);
    engine_events.cancel(ignored);
    drain_timer.cancel();
    force_timer.cancel();
    accept_pause.cancel();
    keeper_timer.cancel();
    if (keeper) keeper->stop();
    const std::set<Connection*> all = connections;
    for (Connection* connection : all) connection->close();
}

void Server::Core::closed(Connection& connection) { connections.erase(&connection); }

Result<std::unique_ptr<Server>> Server::open(ServerOptions options, metrics::Metrics& metrics) {
    std::optional<client::Url> collector;
    if (!options.otlp_endpoint.empty()) {
        auto url = client::parse_url(options.otlp_endpoint);
        if (!url) return std::move(url).error();
        collector = *std::move(url);
    }
    auto core = std::make_unique<Core>(std::move(options), metrics, std::move(collector));
    Status bound = core->bind();
    if (!bound) return std::move(bound).error();
    return std::unique_ptr<Server>(new Server(std::move(core)));
}

Server::Server(std::unique_ptr<Core> core) : core_(std::move(core)) {}
Server::~Server() = default;

uint16_t Server::port() const noexcept {
    const std::string& address = core_->address;
    return static_cast<uint16_t>(std::stoi(address.substr(address.rfind(':') + 1)));
}

std::string Server::address() const { return core_->address; }

runtime::Notifier Server::notifier() noexcept {
    return {[](void* self) noexcept {
                const uint64_t one = 1;
                (void)!::write(static_cast<Core*>(self)->event_fd, &one, sizeof one);
            },
            core_.get()};
}

void Server::loading(double share_done) { core_->readiness.share_done = share_done; }

void Server::ready(std::vector<ModelCard> cards, runtime::Inbox& inbox, runtime::Fanout& fanout, MachineCard machine,
                   ModelLoader* loader) {
    asio::post(core_->io,
               [core = core_.get(), cards = std::move(cards), machine = std::move(machine), &inbox, &fanout,
                loader]() mutable { core->open_house(std::move(cards), inbox, fanout, std::move(machine), loader); });
}

void Server::Core::open_house(std::vector<ModelCard> cards, runtime::Inbox& inbox, runtime::Fanout& fanout,
                              MachineCard machine, ModelLoader* loader) {
    std::vector<ResidentSet::Member> members(cards.size());
    for (const ModelCard& card : cards) {
        check(index(card.model) < members.size(), "a model's number is its place");
        const bool resident = loader == nullptr || card.resident;
        members[index(card.model)] = {.bytes = card.memory_bytes, .keep = card.keep_alive, .resident = resident};
    }
    ModelKeeper::Hands hands;
    hands.load_thread = [this](std::function<void()> job) { asio::post(load_thread, std::move(job)); };
    hands.own_thread = [this](std::function<void()> job) { asio::post(io, std::move(job)); };
    hands.wake_after = [this](Nanos span) {
        if (finishing) return;  // a wait would keep the loop running
        keeper_timer.expires_after(std::chrono::nanoseconds(span));
        keeper_timer.async_wait([this](error_code error) {
            if (!error) keeper->wake();
        });
    };
    keeper.emplace(std::move(members), loader, std::move(hands));
    keeper->on_cost = [this](ModelId model, const StepCost& cost) {
        for (const ServedModel& each : house->catalog.models())
            if (each.model == model) each.measured(cost);
    };
    house = std::make_unique<House>(House{Catalog(std::move(cards)), inbox, fanout, std::move(machine), *keeper});
    flights.emplace(house->inbox, board);
    readiness.share_done = 1.0;
    readiness.house = house.get();
}

void Server::failed(std::string reason) {
    asio::post(core_->io, [core = core_.get(), reason = std::move(reason)]() mutable {
        core->failures.push_back(std::make_unique<std::string>(std::move(reason)));
        core->readiness.failure = core->failures.back().get();
    });
}

void Server::engine_restarts(uint64_t count) { core_->readiness.engine_restarts = count; }

Status Server::run() {
    Core& core = *core_;
    if (core.options.handle_signals) {
        error_code error;
        core.signals.add(SIGINT, error);
        core.signals.add(SIGTERM, error);
        if (error) return Error{ErrorCode::io, "cannot wait for signals: " + error.message(), {}};
        core.hear_signals();
    }
    asio::co_spawn(core.io, core.accept(), asio::detached);
    asio::co_spawn(core.io, core.hear_engine(), asio::detached);
    asio::post(core.export_thread, yield_to_others);
    core.archive.begin();
    core.io.run();
    core.text_thread.join();
    core.load_thread.join();
    core.history_thread.join();  // what has ended is on disk
    core.end_exports();          // or told
    core.readiness.house = nullptr;
    core.flights.reset();  // its places go back to the inbox, which may end before this server does
    return Ok{};
}

void Server::drain() {
    asio::post(core_->io, [core = core_.get()] { core->begin_drain(); });
}

void Server::stop() {
    asio::post(core_->io, [core = core_.get()] { core->stop_all(); });
}

}  // namespace cadans::serve
