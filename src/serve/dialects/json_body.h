// Reads a request body as JSON, strictly: every way to be malformed is an error with its place.
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "base/result.h"

namespace cadans::serve {

struct JsonLimits {
    size_t depth = 64;          ///< of nested objects and arrays
    size_t values = 1'000'000;  ///< in all: bounds the memory that a small body can ask for
};

/// The object that a body holds.
///
/// Errors  bad_input: no JSON, no object at the top, a key twice (`where` is its path), deeper or more than the limits,
///         invalid UTF-8, a byte order mark, NaN and Infinity, numbers that overflow
/// Cost    one pass
Result<nlohmann::ordered_json> parse_body(std::string_view body, const JsonLimits& limits = {});

}  // namespace cadans::serve
