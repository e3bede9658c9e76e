// Hexadecimal digits as people and formats write them.
#pragma once

namespace cadans {

/// 0 to 15, or -1 for another character.
constexpr int hex_digit(char c) noexcept {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

}  // namespace cadans
