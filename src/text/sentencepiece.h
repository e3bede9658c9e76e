// SentencePiece's merging by score: characters grow into pieces, bytes are the last resort.
#pragma once

#include <string_view>
#include <vector>

#include "base/ids.h"
#include "text/vocabulary.h"

namespace cadans::text {

/// Appends the ids of a text without special tokens; a space in front where `space_prefix`. What has no piece becomes
/// byte tokens, or the unknown token where the vocabulary has no byte tokens. Thread-safe.
///
/// Cost    O(n log n) in bytes
/// Source  Kudo & Richardson 2018
void encode_sentencepiece(const Vocabulary& vocabulary, std::string_view text, bool space_prefix,
                          std::vector<TokenId>& ids);

}  // namespace cadans::text
