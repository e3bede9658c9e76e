// All places where the present end of a sequence stood before, and what followed there most often.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"
#include "flow/drafter.h"

namespace cadans::draft {

/// The suffix automaton of the tokens read so far. Each state stands for endings that occur at the same places; it
/// keeps the token that followed there, the most frequent one where one has a majority, else a late one.
///
/// Memory: some 120 bytes for each of `tokens_most`, taken at once. What is read beyond these is no longer
/// remembered, but goes on being found.
/// Thread rule: one thread. Cost: read() is constant a token on average, guess() a look-up a token.
/// Source: Blumer et al. 1985 (the automaton); Boyer & Moore 1991 (the majority); Oliaro et al. 2024 (SuffixDecoding).
class SuffixAutomaton {
  public:
    explicit SuffixAutomaton(uint32_t tokens_most);

    void read(TokenId token);
    uint32_t tokens_read() const noexcept { return tokens_read_; }

    /// What may follow all that was read.
    Guess guess(std::span<TokenId> out) const noexcept;

  private:
    using StateId = uint32_t;
    static constexpr uint32_t kNone = UINT32_MAX;
    static constexpr StateId kRoot = 0;

    struct State {
        uint32_t length = 0;     ///< of its longest ending
        StateId link = kNone;    ///< of the longest ending that also stands elsewhere
        uint32_t edges = kNone;  ///< the first
        uint32_t next = 0;       ///< the token that followed
        uint32_t lead = 0;       ///< how much more often than others, at least 1, or the latest; 0: none did
    };
    struct Edge {
        StateId from, to;
        uint32_t token;
        uint32_t sibling;  ///< of the same state
        uint32_t chained;  ///< in the same bucket
    };

    uint32_t bucket(StateId from, uint32_t token) const noexcept;
    uint32_t find(StateId from, uint32_t token) const noexcept;
    void connect(StateId from, uint32_t token, StateId to);
    void note(uint32_t token) noexcept;
    void append(uint32_t token);
    void follow(uint32_t token) noexcept;
    StateId split(StateId from, StateId to);

    uint32_t tokens_most_;
    uint32_t tokens_read_ = 0;
    std::vector<State> states_;
    std::vector<Edge> edges_;
    std::vector<uint32_t> buckets_;  ///< a power of two
    StateId last_ = kRoot;           ///< all that was read
    StateId match_ = kRoot;          ///< the longest ending of it that stands earlier
    uint32_t match_length_ = 0;
};

}  // namespace cadans::draft
