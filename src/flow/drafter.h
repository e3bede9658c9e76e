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
    model,   ///< what a smaller model draws
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

/// A sequence that comes in: what a drafter may know of it.
struct Newcomer {
    SeqId seq{};
    Speculation how = Speculation::as_served;
    uint32_t tokens_max = 0;  ///< the longest it can become
    ModelId model{};          ///< ids of another mean other words
    uint64_t scope = 0;       ///< who asks
    bool recalls = false;     ///< may be guessed from this asker's last answers, and be among them
};

/// Knows ids only. The same calls give the same answers.
///
/// Thread rule: one thread, the scheduler's. Cost: begin() and end() may allocate; read() and guess() do not, and take
/// some microseconds however long the sequence is: who has much to read reads on in later calls.
class Drafter {
  public:
    virtual ~Drafter() = default;

    /// A sequence comes in. What it is guessed with; off: nothing ever is, and it is not named again. With a model the
    /// scheduler guesses itself, and asks all the same.
    virtual Speculation begin(const Newcomer& who) = 0;

    /// It knows so much now; `known` only ever grows.
    virtual void read(SeqId seq, std::span<const TokenId> known) = 0;

    /// Reads, and writes what may follow `known` to the front of `out`.
    virtual Guess guess(SeqId seq, std::span<const TokenId> known, std::span<TokenId> out) = 0;

    /// It is gone; `answer` is what was written of it.
    virtual void end(SeqId seq, std::span<const TokenId> answer) = 0;
};

}  // namespace cadans
