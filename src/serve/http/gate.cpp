#include "serve/http/gate.h"

#include <algorithm>
#include <boost/asio/ip/address_v4.hpp>
#include <cctype>

#include "serve/dialects/error_reply.h"

namespace cadans::serve {

namespace {

/// What pages may send: our own fields and those that the official JavaScript clients put on every call.
constexpr const char* kClientFields =
    "authorization, content-type, x-api-key, x-request-id, anthropic-version, anthropic-beta, "
    "anthropic-dangerous-direct-browser-access, x-stainless-arch, x-stainless-helper-method, x-stainless-lang, "
    "x-stainless-os, x-stainless-package-version, x-stainless-retry-count, x-stainless-runtime, "
    "x-stainless-runtime-version, x-stainless-timeout";

std::string lower(std::string_view text) {
    std::string out(text);
    for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return out;
}

HttpReply refusal(const HttpRequest& request, int status, std::string message) {
    const Dialect dialect = dialect_of(request.path);
    const ErrorCode code = status == 401 ? ErrorCode::denied : ErrorCode::bad_input;  // only 401 is about a key
    HttpReply reply = error_reply({code, std::move(message), {}}, dialect);
    reply.status = status;
    return reply;
}

/// The whole of 127.0.0.0/8 in its usual spelling, and ::1.
bool is_loopback(const std::string& name) {
    if (name == "::1") return true;
    boost::system::error_code error;
    const auto address = boost::asio::ip::make_address_v4(name, error);
    return !error && address.is_loopback();
}

bool is_json(std::string_view content_type) {
    std::string type = lower(content_type.substr(0, content_type.find(';')));
    while (!type.empty() && (type.back() == ' ' || type.back() == '\t')) type.pop_back();
    return type == "application/json" || (type.starts_with("application/") && type.ends_with("+json"));
}

/// What `curl -d` sends when nobody names a type. A browser would send the same for a form, but never without saying
/// where the form came from.
bool is_plain_tool(const HttpRequest& request) {
    const std::string_view type = request.field("content-type");
    return (type.empty() || lower(type) == "application/x-www-form-urlencoded") && !request.has_field("origin") &&
           !request.has_field("referer") && !request.has_field("sec-fetch-site") && !request.has_field("cookie");
}

/// The page holds nothing that the program's own file does not; whoever opens it is asked for the key there.
bool is_page(const HttpRequest& request) {
    return request.path == "/" && (request.method == "GET" || request.method == "HEAD");
}

}  // namespace

bool equal_in_constant_time(std::string_view a, std::string_view b) noexcept {
    size_t difference = a.size() ^ b.size();
    for (size_t i = 0; i < a.size(); ++i)
        difference |= static_cast<uint8_t>(a[i]) ^ static_cast<uint8_t>(b.empty() ? 0 : b[i % b.size()]);
    return difference == 0;
}

std::string host_name_of(std::string_view host) {
    std::string_view name = host, port;
    if (host.starts_with('[')) {
        const size_t end = host.find(']');
        if (end == std::string_view::npos) return {};
        name = host.substr(1, end - 1);
        port = host.substr(end + 1);
        if (!port.empty() && port.front() != ':') return {};
        if (!port.empty()) port.remove_prefix(1);
    } else if (const size_t colon = host.rfind(':'); colon != std::string_view::npos) {
        name = host.substr(0, colon);
        port = host.substr(colon + 1);
        if (name.find(':') != std::string_view::npos) return {};
    }
    if (port.size() > 5 || !std::all_of(port.begin(), port.end(), [](char c) { return c >= '0' && c <= '9'; }))
        return {};
    std::string out = lower(name);
    if (out.ends_with('.')) out.pop_back();
    return out;
}

std::optional<HttpReply> Gate::refuse(const HttpRequest& request, std::string_view local_address) const {
    if (!host_allowed(request, local_address))
        return refusal(request, 403,
                       "the Host field names a host that this server does not answer for; --host-name adds one");
    if (request.has_field("origin")) {
        const std::string_view origin = request.field("origin");
        const bool own = origin == "http://" + std::string(request.field("host"));
        if (!own && !origin_listed(origin))
            return refusal(request, 403, "web pages of this origin may not call this server; --allow-origin adds one");
        if (request.method == "OPTIONS") {
            HttpReply reply{.status = 204, .content_type = {}, .body = {}};
            reply.fields = {{"Access-Control-Allow-Methods", "GET, HEAD, POST"},
                            {"Access-Control-Allow-Headers", kClientFields},
                            {"Access-Control-Max-Age", "600"}};
            return reply;
        }
    }
    if (!options_.api_key.empty() && !is_page(request) && !key_given(request))
        return refusal(request, 401, "an API key is needed: send it as \"Authorization: Bearer KEY\"");
    if (request.method == "POST" && !is_json(request.field("content-type")) && !is_plain_tool(request))
        return refusal(request, 415, "this call needs \"Content-Type: application/json\"");
    return std::nullopt;
}

bool Gate::host_allowed(const HttpRequest& request, std::string_view local_address) const {
    const std::string name = host_name_of(request.field("host"));
    if (name.empty()) return false;
    if (name == "localhost" || name.ends_with(".localhost") || is_loopback(name)) return true;
    if (name == lower(local_address) || name == lower(options_.host)) return true;
    return std::any_of(options_.host_names.begin(), options_.host_names.end(),
                       [&](const std::string& each) { return lower(each) == name; });
}

bool Gate::origin_listed(std::string_view origin) const {
    return std::find(options_.allowed_origins.begin(), options_.allowed_origins.end(), origin) !=
           options_.allowed_origins.end();
}

bool Gate::key_given(const HttpRequest& request) const {
    const std::string_view authorization = request.field("authorization");
    constexpr std::string_view kBearer = "bearer ";
    bool given = equal_in_constant_time(request.field("x-api-key"), options_.api_key);
    if (lower(authorization.substr(0, kBearer.size())) == kBearer)
        given = equal_in_constant_time(authorization.substr(kBearer.size()), options_.api_key) || given;
    return given;
}

void Gate::add_origin_fields(const HttpRequest& request, HttpReply& reply) const {
    const std::string_view origin = request.field("origin");
    if (origin.empty() || !origin_listed(origin)) return;
    reply.fields.emplace_back("Access-Control-Allow-Origin", origin);
    reply.fields.emplace_back("Access-Control-Expose-Headers", "x-request-id, retry-after");
    reply.fields.emplace_back("Vary", "Origin");
}

}  // namespace cadans::serve
