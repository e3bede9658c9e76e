// One rule without empty edges, and deterministic where that does not make it much larger.
#pragma once

#include <span>
#include <vector>

#include "grammar/grammar.h"
#include "grammar/nfa.h"

namespace cadans::grammar {

/// A rule as states with edges of their own; state 0 is the start.
struct Automaton {
    struct State {
        std::vector<ByteEdge> bytes;
        std::vector<CallEdge> calls;
        bool accepts = false;
    };
    std::vector<State> states;
};

/// The same texts without empty edges. A call of a rule that `nullable` names may also be passed by.
/// By subset construction, or, where that would take more than a few times the states, by closing over empty edges
/// alone: then edges of one state may overlap.
///
/// Gives an automaton with no states when it would have more than `edges_max` edges.
Automaton without_empty_edges(const Nfa& nfa, const std::vector<bool>& nullable, size_t edges_max);

}  // namespace cadans::grammar
