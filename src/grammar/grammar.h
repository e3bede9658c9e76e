// A compiled grammar: rules over bytes that call each other, nothing left to check.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "grammar/limits.h"
#include "grammar/nfa.h"

namespace cadans::grammar {

using StateId = uint32_t;

struct ByteEdge {
    StateId to;
    uint8_t lo, hi;
};
struct CallEdge {
    RuleId rule;
    StateId to;
};

/// A pushdown automaton over bytes. Every state leads to an end, no rule calls itself before it has read a byte, and no
/// called rule is empty (where it could be, the caller has a way past it). Edges of a state may overlap.
///
/// Thread rule: immutable, thread-safe
class Grammar {
  public:
    struct State {
        uint32_t first_byte_edge, first_call_edge;
        bool accepts;
    };
    struct Rule {
        StateId start;         ///< does not accept
        StateId first, count;  ///< its states
        uint32_t rank;         ///< above that of every rule that can call it before reading a byte
        bool leaf;             ///< calls no rule
        bool free;             ///< an answer may end behind any character inside it
    };

    StateId root() const noexcept { return root_; }  ///< start of the root rule; may accept
    size_t states() const noexcept { return states_.size() - 1; }
    size_t edges() const noexcept { return byte_edges_.size() + call_edges_.size(); }
    size_t bytes() const noexcept {  ///< of memory, about
        return states_.size() * (sizeof(State) + sizeof(uint32_t)) + byte_edges_.size() * sizeof(ByteEdge) +
               call_edges_.size() * sizeof(CallEdge) + rules_.size() * sizeof(Rule);
    }
    std::span<const Rule> rules() const noexcept { return rules_; }
    const Rule& rule_of(StateId state) const noexcept { return rules_[rule_of_[state]]; }
    bool accepts(StateId state) const noexcept { return states_[state].accepts; }

    const Alphabet& alphabet() const noexcept { return alphabet_; }  ///< that of its Limits

    /// Ascending; overlapping where the rule could not be made deterministic.
    std::span<const ByteEdge> bytes_from(StateId state) const noexcept {
        const uint32_t begin = states_[state].first_byte_edge, end = states_[state + 1].first_byte_edge;
        return {byte_edges_.data() + begin, end - begin};
    }
    std::span<const CallEdge> calls_from(StateId state) const noexcept {
        const uint32_t begin = states_[state].first_call_edge, end = states_[state + 1].first_call_edge;
        return {call_edges_.data() + begin, end - begin};
    }
    /// An answer may end here though nothing else does: between two characters of a free rule.
    bool free(StateId state) const noexcept {
        constexpr uint8_t kFirstNotAscii = 0x80;
        const auto edges = bytes_from(state);
        return rule_of(state).free && !edges.empty() && edges[0].lo < kFirstNotAscii;
    }
    /// Nothing comes behind this state: whoever returns to it may as well return to its caller.
    bool only_accepts(StateId state) const noexcept {
        return accepts(state) && bytes_from(state).empty() && calls_from(state).empty();
    }

  private:
    friend class Linker;
    Grammar() = default;

    std::vector<State> states_;  // and one behind the last
    std::vector<ByteEdge> byte_edges_;
    std::vector<CallEdge> call_edges_;
    std::vector<Rule> rules_;
    std::vector<uint32_t> rule_of_;
    Alphabet alphabet_;
    StateId root_ = 0;
};

/// The rules of a grammar while a source writes them. Thread rule: one thread
class Rules {
  public:
    explicit Rules(const Limits& limits = {}) : limits_(limits) {}

    /// A rule without text yet; `name` is for error messages.
    RuleId add(std::string name);
    /// Names of rules that are added from now on begin with this.
    void within(std::string place) { place_ = std::move(place); }
    /// An answer may end behind any character inside this rule, though the rule does not end there for its callers.
    void set_free(RuleId rule) { rules_[rule].free = true; }
    void set(RuleId rule, Nfa body);
    RuleId add(std::string name, Nfa body) {
        const RuleId rule = add(std::move(name));
        set(rule, std::move(body));
        return rule;
    }
    size_t size() const noexcept { return rules_.size(); }
    const Limits& limits() const noexcept { return limits_; }
    /// It may grow as far as the limit of edges leaves room behind all rules that were set.
    Nfa body() const { return Nfa(edges_left()); }

    /// Whoever writes asks after each rule: what follows could not be compiled, so it need not be written.
    bool full() const noexcept { return full_ || rules_.size() > limits_.rules; }
    /// Takes from what all sources of these rules may spend together; false: there is no more.
    bool spend(uint64_t work) noexcept { return (work_ += work) <= limits_.work; }

    /// Errors  bad_input, with the rule's name in `where`: nothing can be written, a rule calls itself before it has
    ///         read a byte, or a limit is passed
    /// Cost    about linear in the edges where rules are nearly deterministic; never above the limits
    Result<Grammar> compile(RuleId root) const;

  private:
    friend class Linker;
    struct Named {
        std::string name;
        Nfa body;
        bool free = false;
    };
    size_t edges_left() const noexcept { return std::max<size_t>(limits_.edges - edges_, kBodyLeast); }

    static constexpr size_t kBodyLeast = 64;  // edges that any body may have: when it is set, the rules are full
    Limits limits_;
    std::string place_;
    std::vector<Named> rules_;
    size_t edges_ = 0, states_ = 0;  // of all bodies; edges_ stays within its limit
    uint64_t work_ = 0;
    bool full_ = false;
};

}  // namespace cadans::grammar
