// The header of an HTTP request, read strictly: what two readers could understand differently is refused.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "serve/http/http_message.h"
#include "serve/options.h"

namespace cadans::serve {

/// Why a request is turned away before it is understood. The connection is closed after it.
struct HeadFault {
    int status;
    const char* message;
};

/// What can be said of bytes that may not be a whole header yet: a fault, or nothing so far.
std::optional<HeadFault> early_fault(std::string_view bytes, const HttpLimits& limits);

/// Checks a whole header (ending in an empty line): line ends, field syntax, counts, and that the length of the body
/// can be read in one way only.
std::optional<HeadFault> head_fault(std::string_view head, const HttpLimits& limits);

/// Splits a request target (origin or absolute form) into path and query, and decodes the path. False: malformed.
/// An absolute form's host replaces the Host field.
bool split_target(std::string_view target, HttpRequest& out);

}  // namespace cadans::serve
