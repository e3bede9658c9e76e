// A regular set of texts as a deterministic automaton over characters, to combine and then to write out.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "grammar/limits.h"
#include "grammar/pattern.h"

namespace cadans::grammar {

/// Partial: a character without an edge leads nowhere. State 0 is the start. Surrogates are no characters.
///
/// Thread rule: a value
class TextAutomaton {
  public:
    struct Edge {
        uint32_t lo, hi;
        uint32_t to;
        bool operator==(const Edge&) const = default;
    };
    struct State {
        std::vector<Edge> edges;  // ascending and disjoint
        bool accepts = false;
    };

    static TextAutomaton anything();
    static TextAutomaton lengths(uint32_t min, uint32_t max);        ///< max may be Nfa::kEndless
    static TextAutomaton words(std::span<const std::string> words);  ///< exactly these, of valid UTF-8
    /// In which it does not occur. It is of printable ASCII but brackets, ^ - and backslash.
    static TextAutomaton without(std::string_view word);
    static TextAutomaton bare_names();  ///< as SchemaOptions::quote has them

    /// The texts that a pattern matches as a whole, or, with `search`, that hold a match anywhere, as JSON Schema's
    /// `pattern` means it. ^ and $ are the text's ends.
    /// Errors  too many states: bad_input
    static Result<TextAutomaton> of(const Pattern& pattern, bool search, const Limits& limits);

    /// Errors  too many states: bad_input
    static Result<TextAutomaton> intersection(const TextAutomaton& a, const TextAutomaton& b, const Limits& limits);
    TextAutomaton complement() const;

    bool empty() const;
    bool accepts(std::string_view text) const;  ///< false for what is no UTF-8
    size_t size() const noexcept { return states_.size(); }
    std::span<const State> states() const noexcept { return states_; }

    /// Edges over UTF-8. Gives the end.
    Nfa::State add_raw(Nfa& nfa, Nfa::State from) const;
    /// A JSON string with its quotes: escaped where JSON demands it, else as UTF-8; where any character may come, every
    /// escape that JSON knows, surrogate pairs as one character, lone surrogates never. Gives the end.
    Nfa::State add_json_string(Nfa& nfa, Nfa::State from) const;
    /// Between two of these quotes, as it is: no text may hold the quote. Gives the end.
    Nfa::State add_quoted(Nfa& nfa, Nfa::State from, std::string_view quote) const {
        return nfa.literal(add_raw(nfa, nfa.literal(from, quote)), quote);
    }

  private:
    std::vector<State> states_;
};

}  // namespace cadans::grammar
