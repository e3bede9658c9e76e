// Every route, and what answers it.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>

#include "metrics/metrics.h"
#include "runtime/fanout.h"
#include "runtime/inbox.h"
#include "serve/dialects/error_reply.h"
#include "serve/dialects/generation_request.h"
#include "serve/dialects/preload.h"
#include "serve/generation.h"
#include "serve/http/http_message.h"
#include "serve/models/machine_card.h"
#include "serve/options.h"
#include "serve/record/archive.h"
#include "serve/record/live_board.h"
#include "serve/record/now_json.h"
#include "serve/record/span_exporter.h"

namespace cadans::serve {

/// The models and the engine behind them, once they are there. Immutable but for which models are in memory.
struct House {
    Catalog catalog;
    runtime::Inbox& inbox;
    runtime::Fanout& fanout;
    MachineCard machine;
    const ModelKeeper& keeper;  ///< to be asked on the thread that serves
};

/// Where the server stands. Thread-safe: atomics; what the pointers name is never taken away again.
struct Readiness {
    std::atomic<const House*> house{nullptr};
    std::atomic<double> share_done{0.0};
    std::atomic<const std::string*> failure{nullptr};
    std::atomic<bool> draining{false};
    std::atomic<uint64_t> engine_restarts{0};
};

/// An answer that may have to wait for a disk: it is made on the history's thread.
using Later = std::function<HttpReply()>;

/// Server-sent events that go on until the client leaves or the server stops. Thread rule: as Generation.
class Feed {
  public:
    virtual ~Feed() = default;
    virtual void write(std::string& out) = 0;  ///< one more frame; called a few times a second
};

/// An answer that is there at once, a request that goes to the engine, one that only wants a model, an answer that
/// takes a while, or one without end.
using Opened =
    std::variant<HttpReply, std::unique_ptr<Generation>, std::unique_ptr<Preload>, Later, std::unique_ptr<Feed>>;

class Doors;

struct Route {
    const char* method;  ///< HEAD goes where GET goes
    const char* path;    ///< "*" at the end takes the rest of the path
    Opened (Doors::*answer)(const HttpRequest&);
    const char* what;  ///< for people
};

/// Thread rule: POST routes on any thread; all others on the thread that serves.
class Doors {
  public:
    Doors(const ServerOptions& options, Readiness& readiness, metrics::Metrics& metrics, Archive& archive,
          LiveBoard& board, const SpanExporter& spans)
        : options_(options),
          readiness_(readiness),
          metrics_(metrics),
          archive_(archive),
          board_(board),
          spans_(spans) {}

    static std::span<const Route> routes() noexcept;

    /// Never throws: what a library throws becomes an error reply.
    Opened open(const HttpRequest& request) noexcept;

  private:
    Opened dispatch(const HttpRequest& request);

    Opened page(const HttpRequest&);
    Opened live(const HttpRequest&);
    Opened ready(const HttpRequest&);
    Opened prometheus(const HttpRequest&);
    Opened finished_request(const HttpRequest&);
    Opened finished_requests(const HttpRequest&);
    Opened history(const HttpRequest&);
    Opened now(const HttpRequest&);
    Opened now_stream(const HttpRequest&);
    Opened machine(const HttpRequest&);

    Opened models(const HttpRequest&);
    Opened model(const HttpRequest&);
    Opened chat(const HttpRequest&);
    Opened completion(const HttpRequest&);

    Opened tokenize(const HttpRequest&);
    Opened detokenize(const HttpRequest&);
    Opened tokenizer_info(const HttpRequest&);
    Opened apply_template(const HttpRequest&);

    Opened responses(const HttpRequest&);
    Opened anthropic_messages(const HttpRequest&);
    Opened anthropic_count(const HttpRequest&);
    Opened embeddings(const HttpRequest&);

    Opened ollama_version(const HttpRequest&);
    Opened ollama_tags(const HttpRequest&);
    Opened ollama_ps(const HttpRequest&);
    Opened ollama_show(const HttpRequest&);
    Opened ollama_chat(const HttpRequest&);
    Opened ollama_generate(const HttpRequest&);
    Opened ollama_embed(const HttpRequest&);
    Opened ollama_embeddings(const HttpRequest&);

    using Parse = Result<GenerationRequest> (*)(const nlohmann::ordered_json&, const Catalog&);
    Opened generate(const HttpRequest& request, Parse parse, const char* id_prefix, Dialect dialect);

    class NowFeed;
    static constexpr uint32_t kMostFeeds = 32;
    Snapshot snapshot() const;

    /// The house, or why there is none to ask.
    Result<const House*> house() const;
    uint64_t scope_of(const std::string& user) const;
    std::optional<StepCost> cost_of(const std::string& model) const;  ///< thread-safe

    const ServerOptions& options_;
    Readiness& readiness_;
    metrics::Metrics& metrics_;
    Archive& archive_;
    LiveBoard& board_;
    const SpanExporter& spans_;
    uint32_t feeds_ = 0;
    std::atomic<uint64_t> next_request_{1};
};

/// A name that nobody can guess and that never comes twice.
std::string fresh_id(std::string_view prefix);

}  // namespace cadans::serve
