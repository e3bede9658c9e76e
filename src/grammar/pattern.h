// A regular expression or the right side of a grammar rule, as it was read: a tree of parts.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "grammar/code_points.h"
#include "grammar/limits.h"

namespace cadans::grammar {

/// Thread rule: a value
struct Pattern {
    enum class Kind : uint8_t { set, sequence, choice, repeat, call, begin, end };
    Kind kind = Kind::sequence;
    CodePointSet set = {};            ///< of `set`: one of these characters
    std::vector<Pattern> parts = {};  ///< of sequence, choice, repeat (one)
    uint32_t min = 0, max = 0;        ///< of repeat; max is Nfa::kEndless without end
    RuleId rule = 0;                  ///< of call

    static Pattern of(CodePointSet set) { return {.kind = Kind::set, .set = std::move(set)}; }
    static Pattern repeated(Pattern part, uint32_t min, uint32_t max);
};

/// How a regular expression is meant.
struct RegexFlags {
    /// Python's, kept on the safe side: where its classes and another library's differ, only what both allow. ^ and $
    /// are refused.
    bool python = false;
    bool any_case = false;  ///< a letter is either of its cases
    bool dot_all = false;   ///< . is any character
};

/// Reads an ECMAScript regular expression with the u flag, or Python's: characters, classes, \d \w \s, groups, choices,
/// greedy and lazy repeats, ^ and $ anywhere.
///
/// Errors  bad_input for what is malformed, unsupported for what cannot be kept by a finite automaton or needs tables
///         (back references, look-around, \b, \p); `where` is "at byte N of the pattern"
/// Cost    linear; recursion no deeper than limits.depth
Result<Pattern> read_regex(std::string_view source, const Limits& limits = {}, RegexFlags flags = {});

/// Edges for a pattern without ^ and $ over the UTF-8 of its characters.
Nfa::State add_pattern(Nfa& nfa, Nfa::State from, const Pattern& pattern);

}  // namespace cadans::grammar
