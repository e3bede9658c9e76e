// What kind of character it is, as the patterns of pre-tokenizers ask.
#pragma once

#include <cstdint>

namespace cadans::text {

/// One bit a kind, so that a pattern's class is a mask. The names in comments are Unicode's general categories.
enum CharacterClass : uint8_t {
    kCased = 1,         ///< Lu, Lt
    kLower = 2,         ///< Ll
    kUncased = 4,       ///< Lm, Lo
    kMark = 8,          ///< M
    kNumber = 16,       ///< N
    kSpace = 32,        ///< White_Space
    kPunctuation = 64,  ///< P
    kSymbol = 128,      ///< S
    kLetter = kCased | kLower | kUncased,
};

/// The class of a code point; 0 for what has none of these (controls, unassigned, stray bytes). Thread-safe.
uint8_t character_class(uint32_t code_point) noexcept;

/// The Unicode version that the classes come from, such as "15.0.0".
const char* unicode_version() noexcept;

}  // namespace cadans::text
