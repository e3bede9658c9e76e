// One sequence's tokens become the text that its client reads.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "text/detokenizer.h"
#include "text/reasoning.h"
#include "text/stop_strings.h"

namespace cadans::serve {

struct TokenStreamOptions {
    std::vector<std::string> stop;
    std::optional<text::ReasoningStyle> reasoning;  ///< absent: all text is answer
    bool starts_inside = false;                     ///< the prompt has opened the thinking block already
    text::AfterThinking after_thinking = text::AfterThinking::words;
    bool calls = false;          ///< tools may be called: what marks a call is text
    bool shows_control = false;  ///< control tokens are text: a grammar has asked for their spelling
};

struct TextDelta {
    std::string content, reasoning;
    bool stopped = false;  ///< a stop string is complete: nothing follows
    size_t which = 0;      ///< its place in the list, when stopped
};

/// Whole characters only, nothing of a stop string, thinking apart. Thread rule: one thread. Borrows the vocabulary.
class TokenStream {
  public:
    TokenStream(const text::Vocabulary& vocabulary, TokenStreamOptions options);

    /// The text that this token settles; end tokens settle none.
    TextDelta push(TokenId id);

    /// What was held back. `cut`: the answer ended by its length, so half a character is dropped rather than shown as
    /// a replacement mark.
    TextDelta finish(bool cut);

    /// Characters (code points) that all tokens so far gave, stop strings and thinking included.
    uint32_t characters() const noexcept { return characters_; }

    /// Tokens of the thinking block so far; absent where none is parted.
    std::optional<uint32_t> reasoning_tokens() const noexcept {
        return splitter_ ? std::optional(reasoning_tokens_) : std::nullopt;
    }

  private:
    TextDelta pass(std::string_view text);

    text::Detokenizer detokenizer_;
    text::StopStrings stops_;
    std::optional<text::ReasoningSplitter> splitter_;
    uint32_t characters_ = 0;
    uint32_t reasoning_tokens_ = 0;
};

/// Code points in valid UTF-8.
uint32_t count_characters(std::string_view text) noexcept;

/// A token as logprobs name it: its text, or `bytes:\xNN…` where that is no valid UTF-8.
std::string token_name(const text::Vocabulary& vocabulary, TokenId id);

}  // namespace cadans::serve
