// Thinking in front of an answer that has a form, as rules of its grammar.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/grammar.h"
#include "text/reasoning.h"

namespace cadans::serve {

/// What may come before the part of an answer that is held to a form.
enum class Lead : uint8_t {
    none,
    thinking,  ///< a block of thinking, or none
    rest,      ///< the rest of a block that the prompt has opened
};

/// Where a part of the answer that comes behind thinking begins.
struct BehindLead {
    grammar::Nfa::State text;   ///< the answer's own text
    grammar::Nfa::State calls;  ///< messages of another kind, with channels; else the same
};

/// The rules from a state of `body` on.
///
/// spaced  the text behind it may begin with white space, so that none may come in between
BehindLead add_lead(grammar::Rules& rules, grammar::Nfa& body, grammar::Nfa::State from, Lead lead,
                    const text::ReasoningStyle& style, bool spaced = false);

/// With channels: a message of text for people, and the beginning of the next message behind it.
grammar::Nfa::State add_preamble(grammar::Rules& rules, grammar::Nfa& body, grammar::Nfa::State from);

/// With channels: what text of one message never holds, beside the mark that ends it.
std::vector<std::string> other_channel_marks(std::string_view end);

/// The spellings that these rules ask for: where they are control tokens, a grammar must be able to see them.
std::vector<std::string> marks_of(const text::ReasoningStyle& style);

}  // namespace cadans::serve
