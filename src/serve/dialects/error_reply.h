// Which status and which body an error becomes, in every dialect.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "serve/http/http_message.h"

namespace cadans::serve {

/// Whose form an answer has.
enum class Dialect : uint8_t { openai, ollama, anthropic };

/// The one that clients of this path speak.
Dialect dialect_of(std::string_view path) noexcept;

/// The one table of error kinds: status, OpenAI's `type` and `code`.
struct ErrorForm {
    ErrorCode code;
    int status;
    const char* type;
    const char* name;  ///< `code` in the body
};

const ErrorForm& error_form(ErrorCode code) noexcept;

/// `{"error": {"message", "type", "param", "code"}}`, Ollama's `{"error": "…"}`, or Anthropic's
/// `{"type": "error", "error": {"type", "message"}}`. `error.where` becomes `param`;
/// where it is "model" and the code not_found, `code` is model_not_found.
std::string error_body(const Error& error, Dialect dialect);

/// The whole reply; busy and unavailable carry Retry-After.
HttpReply error_reply(const Error& error, Dialect dialect, int retry_after_seconds = 1);

}  // namespace cadans::serve
