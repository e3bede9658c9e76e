// What an answer may say, as whoever draws its tokens sees it: which may come next, and where one leads.
#pragma once

#include <cstdint>
#include <span>

#include "base/ids.h"

namespace cadans {

/// Where an answer stands in what it may say. An id: a copy of it is all that going back takes.
using ConstraintState = uint32_t;

/// The same calls give the same answers, however many sequences share the object and in whatever order they ask.
///
/// Errors: where one gets no memory it throws std::bad_alloc, and that answer fails; the object stays good for others.
///
/// Thread rule: start() from any thread; all else on whichever thread plans or carries out the step, one at a time.
/// Cost: a known state takes a few passes over the bits; a new one may allocate.
class Constraint {
  public:
    virtual ~Constraint() = default;

    /// Before the first token.
    virtual ConstraintState start() const noexcept = 0;

    /// Sets bit i exactly when token i may come next, the ends of an answer where it may end. False: none may, or it
    /// cannot be said which, and the answer must fail.
    ///
    /// bits  one for each token of the vocabulary, rounded up to words; overwritten
    virtual bool allowed(ConstraintState at, std::span<uint64_t> bits) = 0;

    /// Where a token leads that may come; an end of the answer leads nowhere else.
    virtual ConstraintState after(ConstraintState at, TokenId token) = 0;

    /// Nothing but the end may come: it is complete.
    virtual bool complete(ConstraintState at) = 0;

    /// Writes tokens that spell what must come next to the front of `out` and says how many: 0 where more than one text
    /// may come, where the answer may end, or where it cannot be said. They are a guess of what will be drawn, since
    /// other tokens may spell the same text. Never throws.
    virtual uint32_t forced(ConstraintState, std::span<TokenId>) noexcept { return 0; }
};

}  // namespace cadans
