// A regular expression as a grammar: answers that match it as a whole.
#pragma once

#include <string_view>

#include "grammar/grammar.h"

namespace cadans::grammar {

/// Source  ECMAScript with the u flag, as pattern.h reads it; ^ and $ are the answer's ends
/// Errors  those of read_regex and of Rules::compile
Result<Grammar> regex_grammar(std::string_view pattern, const Limits& limits = {});

/// The same as a rule among others.
Result<RuleId> add_regex(Rules& rules, std::string_view pattern);

}  // namespace cadans::grammar
