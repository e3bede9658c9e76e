// llama.cpp's grammar language as a grammar.
#pragma once

#include <string_view>

#include "grammar/grammar.h"

namespace cadans::grammar {

/// Rules `name ::= …` over "literals", [classes], ., (groups), |, * + ? {n} {n,} {n,m} and names; `root` is the answer.
///
/// Source  grammars/README.md of llama.cpp
/// Errors  bad_input with "line N" in `where`: malformed, an unknown rule, a rule twice, no root, nested too deep; and
///         those of Rules::compile: a rule that begins with itself. unsupported: token references (<[1]>)
Result<Grammar> gbnf_grammar(std::string_view source, const Limits& limits = {});

/// The same as a rule among others. What only shows when those are compiled names the rule, not its line.
Result<RuleId> add_gbnf(Rules& rules, std::string_view source);

}  // namespace cadans::grammar
