#include "serve/dialects/error_reply.h"

#include <array>

#include "serve/dialects/json_writer.h"

namespace cadans::serve {

namespace {

constexpr std::array kForms = {
    ErrorForm{ErrorCode::bad_input, 400, "invalid_request_error", "invalid_value"},
    ErrorForm{ErrorCode::unsupported, 400, "invalid_request_error", "unsupported_parameter"},
    ErrorForm{ErrorCode::not_found, 404, "invalid_request_error", "not_found"},
    ErrorForm{ErrorCode::too_long, 400, "invalid_request_error", "context_length_exceeded"},
    ErrorForm{ErrorCode::too_large, 413, "invalid_request_error", "request_too_large"},
    ErrorForm{ErrorCode::busy, 429, "rate_limit_error", "queue_full"},
    ErrorForm{ErrorCode::unavailable, 503, "server_error", "unavailable"},
    ErrorForm{ErrorCode::denied, 401, "authentication_error", "invalid_api_key"},
    ErrorForm{ErrorCode::io, 500, "server_error", "io_error"},
    ErrorForm{ErrorCode::no_memory, 503, "server_error", "out_of_memory"},
    ErrorForm{ErrorCode::cancelled, 499, "invalid_request_error", "cancelled"},
    ErrorForm{ErrorCode::internal, 500, "server_error", "internal_error"},
};

}  // namespace

const ErrorForm& error_form(ErrorCode code) noexcept {
    for (const ErrorForm& form : kForms)
        if (form.code == code) return form;
    return kForms.back();
}

Dialect dialect_of(std::string_view path) noexcept {
    if (path.starts_with("/api/")) return Dialect::ollama;
    return path.starts_with("/v1/messages") ? Dialect::anthropic : Dialect::openai;
}

namespace {

/// Anthropic's name of a kind of error goes by its status.
const char* anthropic_type(int status) noexcept {
    switch (status) {
        case 401:
            return "authentication_error";
        case 403:
            return "permission_error";
        case 404:
            return "not_found_error";
        case 413:
            return "request_too_large";
        case 429:
            return "rate_limit_error";
        case 503:
            return "overloaded_error";
        default:
            return status >= 500 ? "api_error" : "invalid_request_error";
    }
}

}  // namespace

std::string error_body(const Error& error, Dialect dialect) {
    std::string out;
    const ErrorForm& form = error_form(error.code);
    if (dialect != Dialect::openai) {
        const bool names_it = error.where.empty() || error.message.find(error.where) != std::string::npos;
        const std::string message = names_it ? error.message : error.where + ": " + error.message;
        JsonWriter json(out);
        json.object();
        if (dialect == Dialect::ollama) {
            json.key("error").text(message).close();
            return out;
        }
        json.key("type").text("error");
        json.key("error").object().key("type").text(anthropic_type(form.status)).key("message").text(message).close();
        json.close();
        return out;
    }
    const bool unknown_model = error.code == ErrorCode::not_found && error.where == "model";
    JsonWriter json(out);
    json.object().key("error").object();
    json.key("message").text(error.message);
    json.key("type").text(form.type);
    json.key("param");
    if (error.where.empty())
        json.null();
    else
        json.text(error.where);
    json.key("code").text(unknown_model ? "model_not_found" : form.name);
    json.close().close();
    return out;
}

HttpReply error_reply(const Error& error, Dialect dialect, int retry_after_seconds) {
    HttpReply reply;
    reply.status = error_form(error.code).status;
    reply.body = error_body(error, dialect);
    const bool for_good =
        error.code == ErrorCode::no_memory && !error.where.empty();  // the model that was named never fits
    if (reply.status == 429 || (reply.status == 503 && !for_good))
        reply.fields.emplace_back("Retry-After", std::to_string(retry_after_seconds));
    if (reply.status == 401) reply.fields.emplace_back("WWW-Authenticate", "Bearer");
    return reply;
}

}  // namespace cadans::serve
