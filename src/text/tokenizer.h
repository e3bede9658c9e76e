// Text to token ids, as the model's makers did it in training.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "text/segment.h"
#include "text/vocabulary.h"

namespace cadans::text {

struct EncodeOptions {
    bool add_special = true;     ///< put the begin (and end) token around, where the file asks for it
    bool parse_special = false;  ///< names of control tokens in the text become those tokens
};

/// Immutable and thread-safe once made.
class Tokenizer {
  public:
    /// Errors: unsupported, naming the pre-tokenizer that is not known.
    static Result<Tokenizer> make(Vocabulary vocabulary);

    Tokenizer(Tokenizer&&) noexcept;
    Tokenizer& operator=(Tokenizer&&) noexcept;
    ~Tokenizer();

    /// The ids of a text. Bytes that are no valid UTF-8 are kept where the vocabulary has tokens for them.
    ///
    /// Cost    O(n log n) in bytes, whatever the text
    std::vector<TokenId> encode(std::string_view text, EncodeOptions options = {}) const;

    /// The ids of a rendered chat: the segments are read as one text, but only trusted stretches may yield control
    /// tokens or the `markers`, so nobody can type a turn boundary. A text in which nobody tries gets exactly the ids
    /// of encode(whole, parse_special). The begin token is put in front where the file asks for it and the text does
    /// not start with it.
    std::vector<TokenId> encode(std::span<const Segment> segments, std::span<const TokenId> markers = {}) const;

    /// The user-defined tokens that a template's source uses as markup ("<think>", "<tool_call>", "[INST]"): hand them
    /// to encode(segments), so that content cannot forge them either.
    std::vector<TokenId> markers_of(std::string_view template_source) const;

    /// How many tokens a text of this many bytes has at least: known without reading it, so that what can never fit
    /// is refused before the work.
    size_t fewest_tokens(size_t bytes) const noexcept;

    const Vocabulary& vocabulary() const noexcept { return *vocabulary_; }

  private:
    struct Parts;
    Tokenizer(std::unique_ptr<Vocabulary> vocabulary, std::unique_ptr<Parts> parts);

    std::unique_ptr<Vocabulary> vocabulary_;  // parts_ borrows it
    std::unique_ptr<Parts> parts_;
};

}  // namespace cadans::text
