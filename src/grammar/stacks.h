// Where an answer can be in a grammar: sets of stacks, each stored once, and the steps between them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "grammar/grammar.h"

namespace cadans::grammar {

/// A set of stacks. Equal sets have equal ids, so an id is all that there is to an answer's state: copying it is free,
/// and going back to an older one too.
using StackId = uint32_t;

/// The sets of stacks that answers in one grammar came to, and what each byte makes of them.
///
/// A stack is a state on top of the states to return to. A set is kept as its top states, ascending, each with the set
/// of what may lie below it: a graph-structured stack whose nodes are stored once. States on top are those right after
/// a byte; ends of rules and calls are worked off when a row is filled.
///
/// Grows with the new sets that answers come to, at most a few for each byte of them. What cannot be told is the set
/// kLost, which every byte leads back to: a place with more than kHeadsMax ways, whoever comes there and whatever was
/// asked before; and, when `bytes_max` is reached, every set that is new. Known sets go on to be what they are.
///
/// Thread rule: one thread. Borrows the grammar, which must outlive it.
class Stacks {
  public:
    static constexpr StackId kDead = 0;    ///< no stack at all
    static constexpr StackId kBottom = 1;  ///< the empty stack alone
    static constexpr StackId kLost = 2;    ///< it cannot be told which; the answer must fail
    static constexpr size_t kBytesMax = size_t{128} << 20;
    static constexpr size_t kHeadsMax = 20'000;  ///< ways to read the text that are kept at one place

    struct Frame {
        StateId state;
        StackId below;
    };
    struct Step {
        StackId to;
        uint8_t lo, hi;
    };

    /// bytes_max  of memory, about: no more is taken for new sets
    explicit Stacks(const Grammar& grammar, size_t bytes_max = kBytesMax);

    const Grammar& grammar() const noexcept { return grammar_; }
    StackId start();                                           ///< before the first byte
    StackId of(StateId state);                                 ///< that state on the empty stack
    std::span<const Frame> frames(StackId id) const noexcept;  ///< of the set
    bool has_bottom(StackId id) const noexcept { return sets_[id].bottom; }

    /// Whether the text may end here: some stack comes to its bottom without another byte.
    bool ends(StackId id);
    /// Whether some stack is between two characters of a free rule.
    bool free(StackId id) const noexcept;
    /// Bytes that may come next, ascending and disjoint, none dead. Valid until the next call that is not const.
    std::span<const Step> steps(StackId id);
    /// Where a byte leads; kDead where it may not come.
    StackId step(StackId id, uint8_t byte);

    /// What may follow, or whether the text may end here, cannot be told.
    bool lost(StackId id);
    size_t size() const noexcept { return sets_.size(); }
    size_t bytes() const noexcept;  ///< of memory, about

    void check_invariants() const;

  private:
    struct Set {
        uint32_t first = 0, count = 0;
        uint32_t first_step = 0, step_count = 0;
        uint32_t table = UINT32_MAX;  // of 256 targets, where there are many steps
        uint32_t seen = 0;            // the last round of pop_ends that came here
        bool bottom = false, filled = false, ends = false, lost = false;
    };
    struct Head {
        StateId state;
        StackId below;
        bool operator==(const Head&) const = default;
    };

    StackId intern(std::vector<Frame>& frames, bool bottom);
    StackId join(std::vector<Frame> frames, bool bottom, int depth = 0);
    void fill(StackId id);
    void lose(StackId id) noexcept;
    /// False: there are too many, or one of them cannot be told.
    bool pop_ends(StackId id, std::vector<Head>& heads, bool& ends);
    bool push_calls(std::vector<Head>& heads);

    const Grammar& grammar_;
    size_t bytes_max_;
    std::vector<Set> sets_;
    std::vector<Frame> frames_;
    std::vector<Step> steps_;
    std::vector<StackId> tables_;
    std::vector<StackId> slots_;  // open addressing by content
    uint32_t round_ = 0;
};

}  // namespace cadans::grammar
