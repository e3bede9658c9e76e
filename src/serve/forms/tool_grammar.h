// Calls of tools as rules of a grammar: the model's own form around arguments that validate.
#pragma once

#include <optional>
#include <string_view>

#include "base/result.h"
#include "grammar/grammar.h"
#include "serve/forms/thinking_lead.h"
#include "serve/forms/tool_use.h"

namespace cadans::serve {

/// The rules from a state of `body` on; ends of the answer are made to accept.
///
/// from    where its text begins, and where calls do that are messages of their own
/// text    a rule that an answer without calls keeps to; nothing: any text, and text in front of calls
/// opens   what begins a block of thinking, where one may have come before; empty: nothing does
/// Errors  those of the tools' schemas, `where` being the field and the place in it
Status add_calls(grammar::Rules& rules, grammar::Nfa& body, BehindLead from, const ToolUse& use, CallStyle style,
                 std::optional<grammar::RuleId> text, std::string_view opens = {});

}  // namespace cadans::serve
