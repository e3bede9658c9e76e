// What the fuzzers of grammar sources do with a source: it is refused in words, or an answer is written.
#pragma once

#include "base/check.h"
#include "grammar/matcher.h"

namespace cadans::grammar {

/// Takes the first byte that may come, up to a hundred times; a state without one must be an end.
inline void walk_a_little(const Result<Grammar>& grammar) {
    if (!grammar) {
        check(!grammar.error().message.empty(), "a refusal has words");
        return;
    }
    Stacks stacks(*grammar);
    Matcher matcher(stacks);
    for (int i = 0; i < 100 && !stacks.lost(matcher.at()); i++) {
        const auto steps = stacks.steps(matcher.at());
        if (steps.empty()) {
            check(matcher.may_end(), "where nothing may follow, the answer ends");
            break;
        }
        const char byte = static_cast<char>(steps[static_cast<size_t>(i) % steps.size()].lo);
        check(matcher.accept({&byte, 1}), "a step can be taken");
    }
    stacks.check_invariants();
}

}  // namespace cadans::grammar
