#include "grammar/pattern.h"

namespace cadans::grammar {

Pattern Pattern::repeated(Pattern part, uint32_t min, uint32_t max) {
    Pattern out;
    out.kind = Kind::repeat;
    out.min = min;
    out.max = max;
    out.parts.push_back(std::move(part));
    return out;
}

Nfa::State add_pattern(Nfa& nfa, Nfa::State from, const Pattern& pattern) {
    switch (pattern.kind) {
        case Pattern::Kind::set: {
            const Nfa::State to = nfa.add();
            for (const CodePointRange range : pattern.set.ranges()) add_utf8(nfa, from, range, to);
            return to;
        }
        case Pattern::Kind::sequence:
            for (const Pattern& part : pattern.parts) from = add_pattern(nfa, from, part);
            return from;
        case Pattern::Kind::choice: {
            const Nfa::State to = nfa.add();
            for (const Pattern& part : pattern.parts) nfa.join(add_pattern(nfa, from, part), to);
            return to;
        }
        case Pattern::Kind::repeat:
            return nfa.repeat(from, pattern.min, pattern.max,
                              [&](Nfa::State at) { return add_pattern(nfa, at, pattern.parts[0]); });
        case Pattern::Kind::call:
            return nfa.call(from, pattern.rule);
        case Pattern::Kind::begin:
        case Pattern::Kind::end:
            break;  // the caller has none
    }
    return from;
}

}  // namespace cadans::grammar
