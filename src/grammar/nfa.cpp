#include "grammar/nfa.h"

namespace cadans::grammar {

Nfa::State Nfa::repeat(State from, uint32_t min, uint32_t max, const std::function<State(State)>& part) {
    for (uint32_t i = 0; i < min && !full_; i++) from = part(from);
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
        from = part(from);
    }
    join(from, end);
    return end;
}

}  // namespace cadans::grammar
