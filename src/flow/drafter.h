// Who guesses what an answer goes on with, so that one step can check several of its tokens.
#pragma once

#include <cstdint>
#include <span>

#include "base/ids.h"

namespace cadans {

/// What a request wants guessed with. A guess never changes an answer, only how soon it is there.
enum class Speculation : uint8_t {
    as_served,  ///< as the server is set
    off,
    automatic,
    lookup,  ///< what followed the last place that looks like the present end
    suffix,  ///< what followed most often where the longest such ending stood
};

/// Guesses of one sequence in one step, at most: with the token they stand behind, as many rows as go through the
/// head at a time.
inline constexpr uint32_t kMostDrafts = 15;

/// Guess::match of tokens that a constraint leaves no choice of but how their text is spelled.
inline constexpr uint32_t kForcedMatch = 1 << 20;

/// How many tokens a drafter wrote, and how many tokens before them it has seen in the same order earlier: the longer,
/// the likelier it is right. At least 1 with any token.
struct Guess {
    uint32_t tokens = 0;
    uint32_t match = 0;
};

/// Knows ids only. The same calls give the same answers.
///
/// Thread rule: one thread, the scheduler's. Cost: begin() may allocate; read() and guess() do not, and take some
/// microseconds however long the sequence is: who has much to read reads on in later calls.
class Drafter {
  public:
    virtual ~Drafter() = default;

    /// A sequence comes in; `tokens_max` is the longest it can become. False: nothing is ever guessed for it, and it is
    /// not named again.
    virtual bool begin(SeqId seq, Speculation how, uint32_t tokens_max) = 0;

    /// It knows so much now; `known` only ever grows.
    virtual void read(SeqId seq, std::span<const TokenId> known) = 0;

    /// Reads, and writes what may follow `known` to the front of `out`.
    virtual Guess guess(SeqId seq, std::span<const TokenId> known, std::span<TokenId> out) = 0;

    /// It is gone.
    virtual void end(SeqId seq) = 0;
};

}  // namespace cadans
