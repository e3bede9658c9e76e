// The formats of JSON Schema that are kept, as regular expressions.
#pragma once

#include <optional>
#include <string_view>

namespace cadans::grammar {

/// A pattern whose texts all have the format, or nothing for a format that is not known. Where a format is wider than
/// a regular expression can say (31 days in every month, all of RFC 5321), the pattern is narrower, never wider.
std::optional<std::string_view> format_pattern(std::string_view format);

/// Formats that say nothing about validity: those of OpenAPI for numbers, and "password".
bool is_mere_hint(std::string_view format);

}  // namespace cadans::grammar
