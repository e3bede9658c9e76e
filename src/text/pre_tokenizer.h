// Cuts text into the words inside which a byte-level tokenizer may merge.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace cadans::text {

/// A text as code points with their classes and places; what the cutting rules read.
struct CharacterText {
    std::vector<uint32_t> code_points;
    std::vector<uint8_t> classes;
    std::vector<uint32_t> offsets;  ///< byte offset of each, and the text's length at the end

    explicit CharacterText(std::string_view text);
};

/// The end of the word that starts at `at` within [at, end), or `at` when no word starts there.
using CutRule = size_t (*)(const CharacterText& text, size_t at, size_t end);

/// What a pre-tokenizer name means.
struct PreTokenizer {
    std::vector<CutRule> rules;  ///< each cuts the pieces that the one before it left
    bool whole_words = false;    ///< a word that is a token is that token, whatever its merges would give
    bool nfc = false;            ///< text is composed first (Unicode NFC)
    bool adds_bos = false;       ///< the begin token is added unless the file says otherwise
};

/// By the name in `tokenizer.ggml.pre`; an empty name is "default". Nothing for a name that is not known.
std::optional<PreTokenizer> find_pre_tokenizer(std::string_view name);

/// Whether vocabularies with this name begin with the begin token when their file does not say.
bool pre_adds_bos(std::string_view name);

/// Byte offsets at which the words of `text` end, ascending; the last is text.size(). Cost: linear.
std::vector<uint32_t> cut_words(const PreTokenizer& pre, std::string_view text);

/// The text in Unicode's composed form; stray bytes stay where they are. Cost: O(n log n), whatever the text.
/// Source: Unicode Standard Annex 15.
std::string to_nfc(std::string_view text);

}  // namespace cadans::text
