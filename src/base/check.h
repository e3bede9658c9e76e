// Our own bugs: a sentence that must be true, checked always.
#pragma once

#include <string_view>

namespace cadans {

/// Prints the sentence with its place and ends the process with status 70. Never returns.
[[noreturn]] void check_failed(std::string_view why, const char* file, int line) noexcept;

/// Stops the process when `condition` is false. `why` says what should have been true.
inline void check(bool condition, std::string_view why, const char* file = __builtin_FILE(),
                  int line = __builtin_LINE()) {
    if (!condition) [[unlikely]]
        check_failed(why, file, line);
}

}  // namespace cadans
