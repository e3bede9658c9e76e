// One answer in a grammar: which bytes it may go on with, and whether it may end.
#pragma once

#include <span>
#include <string_view>

#include "grammar/stacks.h"

namespace cadans::grammar {

/// Copies are free and independent: keep one to go back to it.
///
/// Thread rule: one thread, that of its Stacks, which it borrows and which must outlive it
class Matcher {
  public:
    explicit Matcher(Stacks& stacks) : stacks_(&stacks), at_(stacks.start()) {}
    Matcher(Stacks& stacks, StackId at) : stacks_(&stacks), at_(at) {}

    /// Takes bytes, all or none: false, and nothing changed, when the grammar forbids them. Behind what cannot be told
    /// it takes any.
    /// Cost: a table look-up a byte where somebody was before, else a step of all stacks
    bool accept(std::string_view bytes);

    bool may_end() const { return stacks_->ends(at_) || stacks_->free(at_); }
    /// Nothing but the end may come.
    bool must_end() const { return stacks_->steps(at_).empty(); }

    /// Writes the bytes that must come next, as far as only one can and the answer may not end, to the front of `out`.
    std::string_view forced(std::span<char> out) const;

    StackId at() const noexcept { return at_; }
    Stacks& stacks() const noexcept { return *stacks_; }
    bool operator==(const Matcher& other) const noexcept { return stacks_ == other.stacks_ && at_ == other.at_; }

  private:
    Stacks* stacks_;
    StackId at_;
};

}  // namespace cadans::grammar
