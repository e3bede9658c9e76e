// Marks in text that comes in pieces: what may still become one waits.
#pragma once

#include <cstddef>
#include <string_view>

namespace cadans::text {

/// What stands between marks without meaning anything.
inline constexpr std::string_view kMarkSpaces = " \t\r\n";

/// How many bytes at the end of `text` could be the beginning of `mark`, a proper one. `mark` is not empty.
size_t possible_beginning(std::string_view text, std::string_view mark) noexcept;

/// How many of kMarkSpaces stand at the end.
size_t trailing_spaces(std::string_view text) noexcept;

}  // namespace cadans::text
