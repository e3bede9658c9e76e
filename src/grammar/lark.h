// Lark's grammar language as a grammar.
#pragma once

#include <string_view>

#include "grammar/grammar.h"

namespace cadans::grammar {

/// Rules `name: …` and terminals `NAME: …` over "strings", "strings"i, /patterns/flags, "a".."z", (groups), [optional],
/// |, ? * + ~n ~n..m and names; `start` is the answer. `%import common.NAME`, `%ignore`, `%json {schema}`, aliases and
/// priorities are read. A text is of the grammar when there is one way to part it into terminals: as Lark's Earley
/// parser sees it with its dynamic_complete lexer. Between terminals, and before the first, at most kIgnoredMax ignored
/// ones are written, and none that Lark, which ignores as much as it can, could find longer than it is. A rule that
/// begins with itself is kept.
///
/// Source  lark's documentation of its grammar; patterns are Python's, of which \w and \d mean ASCII
/// Errors  bad_input with "line N" in `where`: malformed, an unknown name, a name twice, no start, nested too deep; and
///         those of Rules::compile: rules that begin with each other. unsupported, likewise: templates, other imports,
///         %declare, %override, %extend, token references, attributes but capture, what of a pattern cannot be kept,
///         and ignored text that could go on with a character with which a terminal begins
Result<Grammar> lark_grammar(std::string_view source, const Limits& limits = {});

/// The same as a rule among others. What only shows when those are compiled names the rule, not its line.
Result<RuleId> add_lark(Rules& rules, std::string_view source);

inline constexpr uint32_t kIgnoredMax = 16;

}  // namespace cadans::grammar
