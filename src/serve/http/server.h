// The doors of the house: one HTTP server that speaks OpenAI's and Ollama's dialects.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "metrics/metrics.h"
#include "runtime/fanout.h"
#include "runtime/inbox.h"
#include "serve/models/machine_card.h"
#include "serve/models/model_card.h"
#include "serve/options.h"

namespace cadans::serve {

class ModelLoader;

/// Life, as the composition root leads it:
///
///     auto server = Server::open(options, metrics);        // the port is ours, or the error says why not
///     std::jthread http([&] { server->run(); });           // answers 503 with the share done
///     server->loading(0.4);
///     runtime::Fanout fanout(server->notifier());
///     runtime::Inbox inbox(house, places);
///     server->ready(cards, inbox, fanout);                 // 200 from here on
///     ... SIGTERM, or server->drain() ...                  // 503; running requests get options.limits.drain
///     http.join();                                         // run() has returned: stop the engine now
///
/// Metrics outlive the server; inbox, fanout, loader, tokenizers and templates outlive run().
/// Thread rule: run() on one thread; all others are thread-safe.
class Server {
  public:
    /// Binds and listens. Errors: bad_input (host cannot be understood), io (port in use, not permitted), each with
    /// what to do.
    static Result<std::unique_ptr<Server>> open(ServerOptions options, metrics::Metrics& metrics);
    ~Server();

    uint16_t port() const noexcept;         ///< the one we have, also when 0 was asked for
    std::string address() const;            ///< "http://127.0.0.1:11435"
    runtime::Notifier notifier() noexcept;  ///< wakes us when the fanout has events; for the fanout's constructor

    void loading(double share_done);  ///< 0 to 1, shown by /health/ready
    /// Cards are in the order of --model: the first is the default; ModelId is the place of a card. With a loader only
    /// resident ones can be computed with at once, the others when it has loaded them; without one, all can.
    void ready(std::vector<ModelCard> cards, runtime::Inbox& inbox, runtime::Fanout& fanout, MachineCard machine = {},
               ModelLoader* loader = nullptr);
    void failed(std::string reason);  ///< a model cannot be served: /health/ready says why, generation is 503
    void engine_restarts(uint64_t count);

    /// Serves until drained or stopped. Errors: io.
    Status run();

    void drain();  ///< as the first SIGTERM
    void stop();   ///< as the second: running requests are cancelled, run() returns soon

    struct Core;  ///< what its connections share

  private:
    explicit Server(std::unique_ptr<Core> core);
    std::unique_ptr<Core> core_;
};

}  // namespace cadans::serve
