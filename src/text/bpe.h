// Byte-level byte-pair encoding: the bytes of a word, merged pair by pair, best rank first.
#pragma once

#include <string_view>
#include <vector>

#include "base/ids.h"
#include "text/pre_tokenizer.h"
#include "text/vocabulary.h"

namespace cadans::text {

/// Appends the ids of a text without special tokens. Bytes that the vocabulary has no token for are left out, as the
/// reference implementation does. Thread-safe.
///
/// Cost    O(n log n) in the length of a word; most words take one hash probe a byte and merge
/// Source  Sennrich, Haddow & Birch 2016; byte level: Radford et al. 2019
void encode_bpe(const Vocabulary& vocabulary, const PreTokenizer& pre, std::string_view text,
                std::vector<TokenId>& ids);

}  // namespace cadans::text
