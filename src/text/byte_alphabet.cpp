#include "text/byte_alphabet.h"

#include <array>

#include "text/utf8.h"

namespace cadans::text {
namespace {

constexpr bool prints(uint32_t b) noexcept { return (b >= 0x21 && b <= 0x7E) || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE; }

struct Alphabet {
    std::array<uint16_t, 256> letter{};
    std::array<int16_t, 0x180> byte{};
};

constexpr Alphabet kAlphabet = [] {
    Alphabet a;
    for (auto& b : a.byte) b = -1;
    uint16_t next = 0x100;
    for (uint32_t b = 0; b < 256; b++) {
        a.letter[b] = prints(b) ? static_cast<uint16_t>(b) : next++;
        a.byte[a.letter[b]] = static_cast<int16_t>(b);
    }
    return a;
}();

}  // namespace

uint32_t byte_letter(uint8_t byte) noexcept { return kAlphabet.letter[byte]; }

std::optional<uint8_t> letter_byte(uint32_t code_point) noexcept {
    if (code_point >= kAlphabet.byte.size() || kAlphabet.byte[code_point] < 0) return std::nullopt;
    return static_cast<uint8_t>(kAlphabet.byte[code_point]);
}

std::optional<std::string> unspell(std::string_view spelling) {
    std::string bytes;
    for (size_t at = 0; at < spelling.size();) {
        const Utf8Char c = utf8_at(spelling, at);
        const auto byte = letter_byte(c.code_point);
        if (!byte) return std::nullopt;
        bytes.push_back(static_cast<char>(*byte));
        at += c.bytes;
    }
    return bytes;
}

std::string spell(std::string_view bytes) {
    std::string out;
    for (const char b : bytes) append_utf8(out, byte_letter(static_cast<uint8_t>(b)));
    return out;
}

}  // namespace cadans::text
