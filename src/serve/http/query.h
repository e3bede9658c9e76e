// What stands after the question mark of an address.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace cadans::serve {

/// The value of the first NAME=VALUE of this name, percent-decoded, "+" being a space. Nothing where there is none, or
/// an empty one.
std::optional<std::string> query_value(std::string_view query, std::string_view name);

/// The same as a whole number. Errors: bad_input at the name, where it is none or outside the bounds (inclusive).
Result<int64_t> query_number(std::string_view query, std::string_view name, int64_t low, int64_t high,
                             int64_t fallback);

}  // namespace cadans::serve
