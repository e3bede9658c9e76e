// Puts written rules together into a Grammar: no empty edges, no dead ends, no endless calls.
#pragma once

#include <vector>

#include "grammar/determinize.h"
#include "grammar/grammar.h"

namespace cadans::grammar {

/// Thread rule: one thread, one use
class Linker {
  public:
    Linker(const Rules& rules, RuleId root) : rules_(rules), root_(root) {}
    Result<Grammar> link();

  private:
    Status find_nullable();
    Status build_automata();
    void split_accepting_starts();
    void find_productive();
    Status rank_calls();
    Grammar assemble();

    struct Built {
        RuleId source = 0;
        Automaton automaton;
        StateId start = 0;       // the one that callers use: does not accept
        std::vector<bool> good;  // states that lead to an end
        uint32_t rank = 0;
        bool productive = false;
    };
    Error refused(const Built& rule, std::string why) const;

    const Rules& rules_;
    RuleId root_;
    std::vector<bool> nullable_;
    std::vector<Built> built_;      // root first, then as they are called
    std::vector<uint32_t> number_;  // of a source rule in built_
};

}  // namespace cadans::grammar
