#include "apps/server_address.h"

#include <fmt/format.h>

#include <cstdlib>

#include "metrics/phrases.h"

namespace cadans::apps {

client::Request request_to(const ServerAddress& server, std::string path) {
    client::Request request{.path = std::move(path)};
    if (!server.api_key.empty()) request.fields.emplace_back("Authorization", "Bearer " + server.api_key);
    return request;
}

Error error_of(const client::Reply& reply) {
    const auto body = nlohmann::json::parse(reply.body, nullptr, false);
    if (body.is_object() && body.contains("error") && body["error"].is_object() && body["error"].contains("message"))
        return {ErrorCode::unavailable, body["error"].value("message", ""), {}};
    return {
        ErrorCode::unavailable, fmt::format("the server answered with status {}; is it a Cadans?", reply.status), {}};
}

Result<nlohmann::ordered_json> ask(const ServerAddress& server, const std::string& path) {
    const auto url = client::parse_url(server.url);
    if (!url) return url.error();
    auto reply = client::call(*url, request_to(server, path));
    if (!reply) return std::move(reply).error();
    if (reply->status != 200) return error_of(*reply);
    auto document = nlohmann::ordered_json::parse(reply->body, nullptr, false);
    if (document.is_discarded())
        return Error{
            ErrorCode::unavailable, fmt::format("{} did not answer with JSON; is it a Cadans?", server.url), {}};
    return document;
}

std::string language_of_the_terminal() {
    for (const char* variable : {"LC_ALL", "LC_MESSAGES", "LANG"}) {
        const char* value = std::getenv(variable);
        if (value == nullptr || *value == 0) continue;
        const auto language = metrics::language_of(value);
        return metrics::name(language.value_or(metrics::Language::en));
    }
    return metrics::name(metrics::Language::en);
}

}  // namespace cadans::apps
