// How deep JSON is nested, looked at before a parser or a walk over its tree recurses that deep.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace cadans {

inline constexpr size_t kMostNesting = 64;  ///< of documents that people and servers write

/// The deepest nesting of objects and arrays in a text that is taken to be JSON. Cost: one pass, no memory.
inline size_t nesting_of(std::string_view json) noexcept {
    size_t depth = 0, deepest = 0;
    bool quoted = false;
    for (size_t i = 0; i < json.size(); i++) {
        const char c = json[i];
        if (quoted && c == '\\') i++;
        if (c == '"') quoted = !quoted;
        if (quoted) continue;
        if (c == '[' || c == '{') deepest = std::max(deepest, ++depth);
        if ((c == ']' || c == '}') && depth > 0) depth--;
    }
    return deepest;
}

}  // namespace cadans
