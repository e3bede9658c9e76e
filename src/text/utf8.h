// UTF-8, read strictly: what is not a character is a byte that stays visible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace cadans::text {

/// Code points above Unicode stand for single bytes that belong to no character: kStrayByte + byte.
inline constexpr uint32_t kStrayByte = 0x110000;

struct Utf8Char {
    uint32_t code_point;  ///< below kStrayByte: a character; else a stray byte
    uint32_t bytes;       ///< 1 to 4

    bool valid() const noexcept { return code_point < kStrayByte; }
};

/// The character at `at` (at < text.size()). Overlong forms, surrogates and halves come out as one stray byte.
Utf8Char utf8_at(std::string_view text, size_t at) noexcept;

/// Appends a character; a stray byte is appended as that byte.
void append_utf8(std::string& out, uint32_t code_point);

/// How many bytes at the end of `text` may still become a character when more bytes come: 0 to 3.
size_t utf8_unfinished(std::string_view text) noexcept;

/// The text with every maximal broken part as U+FFFD (Unicode 15, section 3.9, "maximal subparts").
std::string utf8_repaired(std::string_view text);

/// Number of code points, each stray byte counting as one.
size_t utf8_length(std::string_view text) noexcept;

}  // namespace cadans::text
