// Token ids to text, one at a time, never splitting a character.
#pragma once

#include <string>

#include "base/ids.h"
#include "text/vocabulary.h"

namespace cadans::text {

struct DetokenizerOptions {
    bool skip_control = true;  ///< control tokens give no text
    bool at_start = false;     ///< the first token starts a text: the space that the tokenizer put before it goes
};

/// Thread rule: one thread. Borrows the vocabulary, which must outlive it.
class Detokenizer {
  public:
    explicit Detokenizer(const Vocabulary& vocabulary, DetokenizerOptions options = {}) noexcept;

    /// The text that this token completes: whole UTF-8 characters, bytes that can belong to none as U+FFFD. What may
    /// still become a character waits. An id outside the vocabulary gives nothing.
    std::string push(TokenId id);

    /// What waits, as U+FFFD: no more tokens come.
    std::string finish();

    bool holds_back() const noexcept { return !pending_.empty(); }

  private:
    const Vocabulary& vocabulary_;
    DetokenizerOptions options_;
    std::string pending_;
};

/// The text of all of these tokens.
std::string detokenize(const Vocabulary& vocabulary, std::span<const TokenId> ids, DetokenizerOptions options = {});

}  // namespace cadans::text
