#include "load/dialect.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "load/prompt_text.h"
#include "load/stop_watch.h"

namespace cadans::load {
namespace {

using Json = nlohmann::json;

client::Request with_key(client::Request request, const std::string& key) {
    if (!key.empty()) request.fields.emplace_back("Authorization", "Bearer " + key);
    return request;
}

/// The first name in `list[i].field` at a path; empty where there is no such list, or no such path.
Result<std::string> first_model(const Peer& peer, const char* path, const char* list, const char* field) {
    const auto reply = client::call(peer.url, with_key({.path = path}, peer.api_key));
    if (!reply) return reply.error();
    const Json body = Json::parse(reply->body, nullptr, false);
    if (reply->status != 200 || !body.is_object() || !body.contains(list) || !body[list].is_array())
        return std::string();
    for (const Json& model : body[list])
        if (model.is_object() && model.contains(field) && model[field].is_string())
            return model[field].get<std::string>();
    return std::string();
}

Result<double> measured_tokens_per_word(const Peer& peer) {
    constexpr uint32_t kFew = 16, kMany = 80;
    uint32_t counted[2] = {};
    for (int i = 0; i < 2; i++) {
        sim::Workload one;
        one.arrivals.push_back({.prompt = i == 0 ? kFew : kMany});
        const Answer answer = ask(peer, prompt_text(one, 0, 1.0, 1), 1);
        if (!answer.error.empty())
            return Error{ErrorCode::unavailable, peer.address + ": " + answer.error, peer.address};
        counted[i] = answer.prompt_tokens;
    }
    // Without a count of its own, what tokenizers usually make of such words.
    if (counted[1] <= counted[0]) return 1.3;
    return double{1} * (counted[1] - counted[0]) / (kMany - kFew);
}

}  // namespace

Result<Peer> meet(const std::string& address, const Wish& wish) {
    auto url = client::parse_url(address);
    if (!url) return std::move(url).error();
    Peer peer{.url = *std::move(url), .address = address, .api_key = wish.api_key, .model = wish.model};
    // A base URL as OpenAI's clients take it.
    if (peer.url.path.ends_with("/v1")) peer.url.path.resize(peer.url.path.size() - 3);
    std::string model;
    if (wish.dialect != "ollama") {
        auto found = first_model(peer, "/v1/models", "data", "id");
        if (!found) return std::move(found).error();
        model = *std::move(found);
    }
    if (model.empty() && wish.dialect != "openai") {
        auto found = first_model(peer, "/api/tags", "models", "name");
        if (!found) return std::move(found).error();
        model = *std::move(found);
        if (!model.empty()) peer.dialect = Dialect::ollama;
    }
    if (peer.model.empty()) peer.model = model;
    if (peer.model.empty())
        return Error{ErrorCode::not_found,
                     address + " names no model, neither as OpenAI (/v1/models) nor as Ollama (/api/tags)", address};
    if (wish.dialect == "ollama") peer.dialect = Dialect::ollama;
    const auto ratio = measured_tokens_per_word(peer);
    if (!ratio) return ratio.error();
    peer.tokens_per_word = *ratio;
    return peer;
}

client::Request request_for(const Peer& peer, const std::string& prompt, uint32_t output) {
    client::Request request{.method = "POST", .path = {}};
    const Json messages = Json::array({{{"role", "user"}, {"content", prompt}}});
    Json body = {{"model", peer.model}, {"messages", messages}, {"stream", true}};
    if (peer.dialect == Dialect::openai) {
        request.path = "/v1/chat/completions";
        body["max_tokens"] = output;
        body["temperature"] = 0;
        body["ignore_eos"] = true;  // servers that do not know it end earlier
        body["stream_options"] = {{"include_usage", true}};
    } else {
        request.path = "/api/chat";
        body["options"] = {{"num_predict", output}, {"temperature", 0}};
    }
    request.body = body.dump();
    request.fields.emplace_back("Content-Type", "application/json");
    request.patience = 600 * kNanosPerSecond;
    return with_key(std::move(request), peer.api_key);
}

}  // namespace cadans::load
