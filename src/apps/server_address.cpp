#include "apps/server_address.h"

#include <fmt/format.h>

#include <cstdlib>

#include "base/nesting.h"
#include "metrics/phrases.h"

namespace cadans::apps {

client::Request request_to(const ServerAddress& server, std::string path) {
    client::Request request{.path = std::move(path)};
    if (!server.api_key.empty()) request.fields.emplace_back("Authorization", "Bearer " + server.api_key);
    return request;
}

Error error_of(const client::Reply& reply) {
    const auto body = nlohmann::ordered_json::parse(reply.body, nullptr, false);
    if (const std::string said = text_at(object_at(body, "error"), "message", ""); !said.empty())
        return {ErrorCode::unavailable, said, {}};
    return {
        ErrorCode::unavailable, fmt::format("the server answered with status {}; is it a Cadans?", reply.status), {}};
}

Result<nlohmann::ordered_json> ask(const ServerAddress& server, const std::string& path) {
    const auto url = client::parse_url(server.url);
    if (!url) return url.error();
    auto reply = client::call(*url, request_to(server, path));
    if (!reply) return std::move(reply).error();
    if (reply->status != 200) return error_of(*reply);
    if (nesting_of(reply->body) > kMostNesting) return strange(server);
    auto document = nlohmann::ordered_json::parse(reply->body, nullptr, false);
    if (document.is_discarded()) return strange(server);
    return document;
}

std::string escaped(std::string_view text) {
    constexpr std::string_view kPlain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
    std::string out;
    for (const char c : text)
        out += kPlain.find(c) != std::string_view::npos ? std::string(1, c)
                                                        : fmt::format("%{:02X}", static_cast<unsigned char>(c));
    return out;
}

Error strange(const ServerAddress& server) {
    return {ErrorCode::unavailable, fmt::format("{} does not answer as Cadans does", server.url), {}};
}

namespace {

const nlohmann::ordered_json* find(const nlohmann::ordered_json& object, const char* key) {
    if (!object.is_object()) return nullptr;
    const auto found = object.find(key);
    return found == object.end() ? nullptr : &*found;
}

}  // namespace

std::string text_at(const nlohmann::ordered_json& object, const char* key, const char* otherwise) {
    const auto* found = find(object, key);
    return found != nullptr && found->is_string() ? found->get<std::string>() : otherwise;
}

std::optional<double> maybe_number_at(const nlohmann::ordered_json& object, const char* key) {
    const auto* found = find(object, key);
    return found != nullptr && found->is_number() ? std::optional(found->get<double>()) : std::nullopt;
}

double number_at(const nlohmann::ordered_json& object, const char* key) {
    return maybe_number_at(object, key).value_or(0.0);
}

const nlohmann::ordered_json& list_at(const nlohmann::ordered_json& object, const char* key) {
    static const auto kNone = nlohmann::ordered_json::array();
    const auto* found = find(object, key);
    return found != nullptr && found->is_array() ? *found : kNone;
}

const nlohmann::ordered_json& object_at(const nlohmann::ordered_json& object, const char* key) {
    static const auto kNone = nlohmann::ordered_json::object();
    const auto* found = find(object, key);
    return found != nullptr && found->is_object() ? *found : kNone;
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
