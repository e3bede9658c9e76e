#include "serve/doors.h"

#include <array>
#include <new>

#include "base/clock.h"
#include "base/random.h"
#include "base/secret_hash.h"
#include "serve/dialects/json_body.h"
#include "serve/dialects/json_writer.h"
#include "serve/dialects/ollama_writer.h"

namespace cadans::serve {

namespace {

constexpr size_t kMostTraceState = 512;  ///< characters, as the recommendation asks at least

bool matches(const Route& route, std::string_view path) {
    const std::string_view pattern = route.path;
    if (!pattern.ends_with('*')) return pattern == path;
    return path.starts_with(pattern.substr(0, pattern.size() - 1)) && path.size() >= pattern.size();
}

}  // namespace

std::string fresh_id(std::string_view prefix) {
    static std::atomic<uint64_t> count{0};
    static const uint64_t secret = fresh_seed();
    constexpr char kDigits[] = "0123456789abcdefghijklmnopqrstuvwxyz";
    std::string out(prefix);
    uint64_t parts[2] = {mix64(secret ^ count.fetch_add(1)), fresh_seed()};
    for (uint64_t part : parts)
        for (int i = 0; i < 12; ++i, part /= 36) out += kDigits[part % 36];
    return out;
}

std::span<const Route> Doors::routes() noexcept {
    static constexpr std::array kRoutes = {
        Route{"GET", "/", &Doors::page, "a page for people"},
        Route{"GET", "/health", &Doors::ready, "as /health/ready"},
        Route{"GET", "/health/live", &Doors::live, "200 while the process answers"},
        Route{"GET", "/health/ready", &Doors::ready, "200 once requests can be served"},
        Route{"GET", "/metrics", &Doors::prometheus, "numbers for Prometheus"},
        Route{"GET", "/cadans/v1/now", &Doors::now, "who is being served, and what the machine does"},
        Route{"GET", "/cadans/v1/now/stream", &Doors::now_stream, "the same, a few times a second"},
        Route{"GET", "/cadans/v1/history", &Doors::history, "finished requests together"},
        Route{"GET", "/cadans/v1/machine", &Doors::machine, "the machine, its models and its settings"},
        Route{"GET", "/cadans/v1/requests", &Doors::finished_requests, "the newest finished requests"},
        Route{"GET", "/cadans/v1/requests/*", &Doors::finished_request,
              "the record of a finished request; /explanation: in sentences"},
        Route{"GET", "/v1/models", &Doors::models, "the models"},
        Route{"GET", "/v1/models/*", &Doors::model, "one model"},
        Route{"POST", "/v1/chat/completions", &Doors::chat, "answer a conversation"},
        Route{"POST", "/v1/completions", &Doors::completion, "continue a text"},
        Route{"POST", "/v1/responses", &Doors::responses, "answer a list of items"},
        Route{"POST", "/v1/messages", &Doors::anthropic_messages, "Anthropic: answer a conversation"},
        Route{"POST", "/v1/messages/count_tokens", &Doors::anthropic_count, "Anthropic: tokens of a conversation"},
        Route{"POST", "/v1/embeddings", &Doors::embeddings, "texts to vectors"},
        Route{"POST", "/tokenize", &Doors::tokenize, "text to token ids"},
        Route{"POST", "/detokenize", &Doors::detokenize, "token ids to text"},
        Route{"GET", "/tokenizer_info", &Doors::tokenizer_info, "special tokens and the chat template"},
        Route{"POST", "/apply-template", &Doors::apply_template, "messages to prompt text"},
        Route{"GET", "/api/version", &Doors::ollama_version, "Ollama: version"},
        Route{"GET", "/api/tags", &Doors::ollama_tags, "Ollama: the models"},
        Route{"GET", "/api/ps", &Doors::ollama_ps, "Ollama: the models in memory"},
        Route{"POST", "/api/show", &Doors::ollama_show, "Ollama: one model"},
        Route{"POST", "/api/chat", &Doors::ollama_chat, "Ollama: answer a conversation"},
        Route{"POST", "/api/generate", &Doors::ollama_generate, "Ollama: answer a prompt"},
        Route{"POST", "/api/embed", &Doors::ollama_embed, "Ollama: texts to vectors"},
        Route{"POST", "/api/embeddings", &Doors::ollama_embeddings, "Ollama: a text to a vector, as it used to be"},
    };
    return kRoutes;
}

Opened Doors::open(const HttpRequest& request) noexcept {
    try {
        return dispatch(request);
    } catch (const std::bad_alloc&) {
        return error_reply({ErrorCode::no_memory, "not enough memory for this request", {}}, dialect_of(request.path));
    } catch (const std::exception&) {
        return error_reply({ErrorCode::internal, "the request could not be handled", {}}, dialect_of(request.path));
    }
}

Opened Doors::dispatch(const HttpRequest& request) {
    const std::string_view method = request.method == "HEAD" ? std::string_view("GET") : request.method;
    std::string allowed;
    for (const Route& route : routes()) {
        if (!matches(route, request.path)) continue;
        if (method == route.method) return (this->*route.answer)(request);
        allowed = route.method == std::string_view("GET") ? "GET, HEAD" : route.method;
    }
    if (!allowed.empty()) {
        HttpReply reply =
            error_reply(bad_input(request.method.substr(0, 20) + " is not possible here: " + allowed + " is"),
                        dialect_of(request.path));
        reply.status = 405;
        reply.fields.emplace_back("Allow", allowed);
        return reply;
    }
    return error_reply({ErrorCode::not_found, "there is nothing at " + request.path.substr(0, 200), {}},
                       dialect_of(request.path));
}

Result<const House*> Doors::house() const {
    if (readiness_.draining) return Error{ErrorCode::unavailable, "the server is stopping", {}};
    if (const std::string* failure = readiness_.failure) return Error{ErrorCode::unavailable, *failure, {}};
    const House* house = readiness_.house;
    if (house == nullptr) return Error{ErrorCode::unavailable, "the model is being loaded", {}};
    return house;
}

uint64_t Doors::scope_of(const std::string& user) const {
    return SecretHash()(options_.api_key + '\n' + user);  // nobody outside can make two scopes meet
}

Opened Doors::generate(const HttpRequest& request, Parse parse, const char* id_prefix, Dialect dialect) {
    const RequestId id{next_request_.fetch_add(1)};
    metrics::RequestRecord record(id, request.accepted);
    const auto refuse = [&](const Error& error, int retry_after = 1) -> Opened {
        metrics_.count_refused();
        return error_reply(error, dialect, retry_after);
    };
    Result<nlohmann::ordered_json> body = parse_body(request.body);
    if (!body) return refuse(body.error());
    Result<const House*> house = this->house();
    if (!house) return refuse(house.error(), 2);
    Result<GenerationRequest> wanted = parse(*body, (*house)->catalog);
    if (!wanted) return refuse(wanted.error());
    record.parsed(steady_now());
    if (wanted->load_only) return std::make_unique<Preload>(*std::move(wanted), request.accepted);
    runtime::Inbox& inbox = (*house)->inbox;
    const uint64_t scope = scope_of(wanted->user);
    Result<Admitted> admitted = admit(*std::move(wanted), id, scope, inbox, record);
    Outlook outlook;
    (*house)->fanout.outlook(outlook);
    if (!admitted) {
        const bool busy = admitted.error().code == ErrorCode::busy;
        const Nanos now = steady_now();
        std::optional<Nanos> first_end;
        if (outlook.first_end) first_end = std::max<Nanos>(0, outlook.made + *outlook.first_end * kNanosPerMicro - now);
        return refuse(admitted.error(), busy ? static_cast<int>(inbox.retry_after_seconds(now, first_end)) : 2);
    }
    std::string client_id(request.field("x-request-id").substr(0, 200));
    auto generation = std::make_unique<Generation>(fresh_id(id_prefix), std::move(client_id), *std::move(admitted),
                                                   std::move(record));
    generation->foresee(outlook);
    generation->part_of(metrics::read_traceparent(request.field("traceparent")),
                        std::string(request.field("tracestate").substr(0, kMostTraceState)));
    return generation;
}

Opened Doors::chat(const HttpRequest& request) {
    return generate(request, parse_chat_request, "chatcmpl-", Dialect::openai);
}
Opened Doors::completion(const HttpRequest& request) {
    return generate(request, parse_completion_request, "cmpl-", Dialect::openai);
}
Opened Doors::responses(const HttpRequest& request) {
    return generate(request, parse_responses, "resp_", Dialect::openai);
}
Opened Doors::anthropic_messages(const HttpRequest& request) {
    return generate(request, parse_anthropic_messages, "msg_", Dialect::anthropic);
}

Opened Doors::anthropic_count(const HttpRequest& request) {
    Result<nlohmann::ordered_json> body = parse_body(request.body);
    if (!body) return error_reply(body.error(), Dialect::anthropic);
    Result<const House*> house = this->house();
    if (!house) return error_reply(house.error(), Dialect::anthropic, 2);
    Result<GenerationRequest> wanted = parse_anthropic_messages(*body, (*house)->catalog);
    if (!wanted) return error_reply(wanted.error(), Dialect::anthropic);
    Result<size_t> tokens = count_prompt(*wanted);
    if (!tokens) return error_reply(tokens.error(), Dialect::anthropic);
    HttpReply reply;
    JsonWriter(reply.body).object().key("input_tokens").number(uint64_t{*tokens}).close();
    return reply;
}

Opened Doors::embeddings(const HttpRequest& request) {
    return generate(request, parse_embeddings, "embd-", Dialect::openai);
}
Opened Doors::ollama_embed(const HttpRequest& request) {
    return generate(request, parse_ollama_embed, "embd-", Dialect::ollama);
}
Opened Doors::ollama_embeddings(const HttpRequest& request) {
    return generate(request, parse_ollama_embeddings, "embd-", Dialect::ollama);
}

Opened Doors::ollama_chat(const HttpRequest& request) {
    return generate(request, parse_ollama_chat, "chat-", Dialect::ollama);
}
Opened Doors::ollama_generate(const HttpRequest& request) {
    return generate(request, parse_ollama_generate, "gen-", Dialect::ollama);
}

}  // namespace cadans::serve
