// What the connections of one server share. Private to the server: the only header that knows Asio.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <memory>
#include <optional>
#include <set>

#include "serve/doors.h"
#include "serve/flights.h"
#include "serve/http/gate.h"
#include "serve/http/server.h"
#include "serve/record/span_exporter.h"

namespace cadans::serve {

class Connection;

/// All members belong to the thread in run(), except where atomics say otherwise.
struct Server::Core {
    Core(ServerOptions chosen, metrics::Metrics& counted, std::optional<client::Url> collector);
    ~Core();

    Status bind();
    boost::asio::awaitable<void> accept();
    boost::asio::awaitable<void> hear_engine();
    void hear_signals();

    void begin_drain();
    void stop_all();     ///< running requests end with an error
    void end_if_idle();  ///< when draining and nobody is served
    void end_exports();  ///< waits for what is still told to a collector, but not long
    void finish();       ///< lets go of everything: run() returns
    void closed(Connection& connection);
    void open_house(std::vector<ModelCard> cards, runtime::Inbox& inbox, runtime::Fanout& fanout, MachineCard machine,
                    ModelLoader* loader);

    ServerOptions options;
    metrics::Metrics& metrics;
    Archive archive;
    SpanExporter spans;
    LiveBoard board;
    Readiness readiness;
    Gate gate;
    Doors doors;
    std::optional<ModelKeeper> keeper;
    std::unique_ptr<House> house;
    std::optional<Flights> flights;
    std::set<Connection*> connections;
    size_t serving = 0;  ///< connections that are in the middle of a request
    std::vector<std::unique_ptr<std::string>> failures;
    std::string address;
    int event_fd = -1;
    bool finishing = false;

    // The context goes before what is above: frames of coroutines that it still holds use those.
    boost::asio::io_context io{1};
    boost::asio::ip::tcp::acceptor acceptor{io};
    boost::asio::posix::stream_descriptor engine_events{io};
    boost::asio::signal_set signals{io};
    boost::asio::steady_timer drain_timer{io};
    boost::asio::steady_timer force_timer{io};
    boost::asio::steady_timer accept_pause{io};
    boost::asio::steady_timer keeper_timer{io};
    boost::asio::thread_pool text_thread{1};     ///< large bodies: parsing and tokenizing away from everybody's thread
    boost::asio::thread_pool history_thread{1};  ///< records to disk and back
    boost::asio::thread_pool export_thread{1};   ///< spans to a collector
    boost::asio::thread_pool load_thread{1};     ///< models in and out
};

}  // namespace cadans::serve
