#include "grammar/nfa.h"

namespace cadans::grammar {

/// A part that leads nowhere is nothing, and so is any number of it.
Nfa::State Nfa::repeat(State from, uint32_t min, uint32_t max, const std::function<State(State)>& part) {
    for (uint32_t i = 0; i < min && !full_; i++) {
        const State next = part(from);
        if (next == from) break;
        from = next;
    }
    if (max == kEndless) {
        const State loop = add();
        join(from, loop);
        join(part(loop), loop);
        const State end = add();
        join(loop, end);
        return end;
    }
    const State end = add();
    for (uint32_t i = min; i < max && !full_; i++) {
        join(from, end);
        const State next = part(from);
        if (next == from) break;
        from = next;
    }
    join(from, end);
    return end;
}

}  // namespace cadans::grammar
