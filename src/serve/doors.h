// Every route, and what answers it.
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <variant>

#include "metrics/metrics.h"
#include "runtime/fanout.h"
#include "runtime/inbox.h"
#include "serve/error_reply.h"
#include "serve/generation.h"
#include "serve/generation_request.h"
#include "serve/http_message.h"
#include "serve/options.h"
#include "serve/request_log.h"

namespace cadans::serve {

/// The models and the engine behind them, once they are there. Immutable.
struct House {
    Catalog catalog;
    runtime::Inbox& inbox;
    runtime::Fanout& fanout;
};

/// Where the server stands. Thread-safe: atomics; what the pointers name is never taken away again.
struct Readiness {
    std::atomic<const House*> house{nullptr};
    std::atomic<double> share_done{0.0};
    std::atomic<const std::string*> failure{nullptr};
    std::atomic<bool> draining{false};
    std::atomic<uint64_t> engine_restarts{0};
};

/// An answer that is there at once, or a request that goes to the engine.
using Opened = std::variant<HttpReply, std::unique_ptr<Generation>>;

class Doors;

struct Route {
    const char* method;  ///< HEAD goes where GET goes
    const char* path;    ///< "*" at the end takes the rest of the path
    Opened (Doors::*answer)(const HttpRequest&);
    const char* what;  ///< for people
};

/// Thread rule: POST routes on any thread; all others on the thread that owns the request log.
class Doors {
  public:
    Doors(const ServerOptions& options, Readiness& readiness, metrics::Metrics& metrics, RequestLog& log)
        : options_(options), readiness_(readiness), metrics_(metrics), log_(log) {}

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

    Opened models(const HttpRequest&);
    Opened model(const HttpRequest&);
    Opened chat(const HttpRequest&);
    Opened completion(const HttpRequest&);

    Opened tokenize(const HttpRequest&);
    Opened detokenize(const HttpRequest&);
    Opened tokenizer_info(const HttpRequest&);
    Opened apply_template(const HttpRequest&);

    Opened ollama_version(const HttpRequest&);
    Opened ollama_tags(const HttpRequest&);
    Opened ollama_ps(const HttpRequest&);
    Opened ollama_show(const HttpRequest&);
    Opened ollama_chat(const HttpRequest&);
    Opened ollama_generate(const HttpRequest&);

    using Parse = Result<GenerationRequest> (*)(const nlohmann::ordered_json&, const Catalog&);
    Opened generate(const HttpRequest& request, Parse parse, const char* id_prefix, Dialect dialect);

    /// The house, or why there is none to ask.
    Result<const House*> house() const;
    uint64_t scope_of(const std::string& user) const;

    const ServerOptions& options_;
    Readiness& readiness_;
    metrics::Metrics& metrics_;
    RequestLog& log_;
    std::atomic<uint64_t> next_request_{1};
};

/// A name that nobody can guess and that never comes twice.
std::string fresh_id(std::string_view prefix);

}  // namespace cadans::serve
