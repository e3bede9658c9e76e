// How long a rule takes any characters at all: what lets most tokens be allowed without looking at them.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "grammar/grammar.h"

namespace cadans::grammar {

/// From a state inside a string, say.
struct PlainRun {
    uint32_t characters = 0;  ///< any plain text of at most so many characters may come, and the rule goes on behind it
    bool exact = false;       ///< and none that is longer
};

/// Plain characters are those that a JSON string holds unescaped, of those that can be written. Thread rule: one
/// thread; borrows the grammar
class PlainRuns {
  public:
    explicit PlainRuns(const Grammar& grammar) : grammar_(grammar) {}

    /// Looks no further than `most` characters. Zero for states of rules that call others.
    PlainRun from(StateId state, uint32_t most);

    size_t size() const noexcept { return next_.size(); }  ///< states that are known

  private:
    StateId next(StateId state);
    bool takes(StateId state, int row, int position, StateId& target) const;

    const Grammar& grammar_;
    std::unordered_map<StateId, StateId> next_;
};

}  // namespace cadans::grammar
