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
/// Thread rule: as Constraint; worn() from any thread.
class AnswerGrammar final : public Constraint {
  public:
    AnswerGrammar(grammar::Grammar grammar, std::shared_ptr<GrammarTokens> tokens)
        : tokens_(std::move(tokens)),
          grammar_(std::move(grammar)),
          stacks_(grammar_),
          mask_(tokens_->cache(), stacks_),
          start_(stacks_.start()),
          begins_complete_(complete(start_)) {}

    ConstraintState start() const noexcept override { return start_; }
    bool allowed(ConstraintState at, std::span<uint64_t> bits) override;
    ConstraintState after(ConstraintState at, TokenId token) override;
    bool complete(ConstraintState at) override;

    /// No answer has a single byte.
    bool begins_complete() const noexcept { return begins_complete_; }
    /// Its memory has grown so much, or it has failed so badly, that the next answers should not have this one.
    bool worn() const noexcept { return worn_.load(std::memory_order_relaxed); }

  private:
    static constexpr size_t kStackBytesMax = size_t{64} << 20;

    std::shared_ptr<GrammarTokens> tokens_;
    grammar::Grammar grammar_;
    grammar::Stacks stacks_;
    grammar::TokenMask mask_;
    ConstraintState start_;
    bool begins_complete_;
    std::atomic<bool> worn_{false};
};

}  // namespace cadans::serve
