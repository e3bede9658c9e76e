// The cutting patterns of known tokenizers, as hand-made scanners.
#pragma once

#include <cstddef>

#include "text/pre_tokenizer.h"

// Each is one regular expression of a tokenizer's makers, written out. They never look back and scan every character a
// bounded number of times, so no text makes them slow. L, N, M, P, S are Unicode's general categories.
namespace cadans::text::cut {

/// (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
size_t llama3(const CharacterText& text, size_t at, size_t end);

/// As llama3, with \p{N} one at a time.
size_t qwen2(const CharacterText& text, size_t at, size_t end);

/// As qwen2, with [\p{L}\p{M}]+ for words.
size_t qwen35(const CharacterText& text, size_t at, size_t end);

/// Words change from upper to lower case once and take their contraction along; \p{N}{1,3}; [\r\n/]* after symbols.
size_t o200k(const CharacterText& text, size_t at, size_t end);

/// As o200k, without contractions and with \p{N} one at a time.
size_t tekken(const CharacterText& text, size_t at, size_t end);

/// 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
size_t gpt2(const CharacterText& text, size_t at, size_t end);

/// [!-/:-~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
size_t deepseek(const CharacterText& text, size_t at, size_t end);

size_t one_digit(const CharacterText& text, size_t at, size_t end);           ///< \p{N}
size_t three_digits(const CharacterText& text, size_t at, size_t end);        ///< \p{N}{1,3}
size_t digit_run(const CharacterText& text, size_t at, size_t end);           ///< \p{N}+
size_t three_ascii_digits(const CharacterText& text, size_t at, size_t end);  ///< [0-9][0-9][0-9]
size_t punctuation_run(const CharacterText& text, size_t at, size_t end);     ///< [\p{P}$+<=>^~|]+
size_t cjk_run(const CharacterText& text, size_t at, size_t end);  ///< [U+4E00-9FA5 U+3040-309F U+30A0-30FF]+

}  // namespace cadans::text::cut
