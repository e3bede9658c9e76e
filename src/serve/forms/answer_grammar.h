// A compiled grammar in use: the constraint that answers of one model are drawn under.
#pragma once

#include <atomic>
#include <memory>

#include "flow/constraint.h"
#include "grammar/matcher.h"
#include "serve/forms/grammar_tokens.h"

namespace cadans::serve {

/// Shared by all answers that keep to it, at the same time and one after the other: what one came to, the next finds.
///
/// An answer fails by itself: where its own place has too many ways to go on, or is new when no more memory may be
/// taken. Others go on.
///
/// Thread rule: as Constraint; bytes() and worn() from any thread.
class AnswerGrammar final : public Constraint {
  public:
    /// spaced     behind thinking, white space is the text's own
    /// bytes_max  of memory for the places that answers come to
    AnswerGrammar(grammar::Grammar grammar, std::shared_ptr<GrammarTokens> tokens, bool spaced = false,
                  size_t bytes_max = grammar::Stacks::kBytesMax)
        : tokens_(std::move(tokens)),
          spaced_(spaced),
          grammar_(std::move(grammar)),
          stacks_(grammar_, bytes_max),
          mask_(tokens_->cache(), stacks_),
          start_(stacks_.start()),
          begins_complete_(complete(start_)),
          bytes_(grammar_.bytes() + stacks_.bytes()) {}

    ConstraintState start() const noexcept override { return start_; }
    bool allowed(ConstraintState at, std::span<uint64_t> bits) override;
    ConstraintState after(ConstraintState at, TokenId token) override;
    bool complete(ConstraintState at) override;
    /// Spelled as a tokenizer mostly would: the longest token first.
    uint32_t forced(ConstraintState at, std::span<TokenId> out) noexcept override;

    /// The text that has a form may begin with white space, so that none in front of it is anything else.
    bool spaced() const noexcept { return spaced_; }
    /// No answer has a single byte.
    bool begins_complete() const noexcept { return begins_complete_; }
    /// Of memory, about; without what all grammars of the model share.
    size_t bytes() const noexcept { return bytes_.load(std::memory_order_relaxed); }
    /// Its memory has grown so much that the next answers should not have this one.
    bool worn() const noexcept { return bytes() > kWornBytes; }

  private:
    static constexpr size_t kForcedBytes = 64;  ///< that are guessed ahead
    static constexpr size_t kWornBytes = size_t{64} << 20;

    std::shared_ptr<GrammarTokens> tokens_;
    bool spaced_;
    grammar::Grammar grammar_;
    grammar::Stacks stacks_;
    grammar::TokenMask mask_;
    ConstraintState start_;
    bool begins_complete_;
    std::atomic<size_t> bytes_;  ///< as of the last mask
};

}  // namespace cadans::serve
