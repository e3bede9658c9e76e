// The letters by which byte-level vocabularies spell raw bytes (GPT-2's bytes-to-unicode table).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace cadans::text {

/// The code point that spells this byte: itself where it prints, else the next free one from U+0100.
uint32_t byte_letter(uint8_t byte) noexcept;

/// The byte that this code point spells, if it spells one.
std::optional<uint8_t> letter_byte(uint32_t code_point) noexcept;

/// The bytes that a spelling stands for; nothing when some character of it is not in the alphabet.
std::optional<std::string> unspell(std::string_view spelling);

/// How a vocabulary spells these bytes.
std::string spell(std::string_view bytes);

}  // namespace cadans::text
