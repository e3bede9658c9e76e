// Thinking in front of an answer that has a form, as rules of its grammar.
#pragma once

#include <cstdint>
#include <string>
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

/// The rules from a state of `body` to the state where the answer proper begins.
grammar::Nfa::State add_lead(grammar::Rules& rules, grammar::Nfa& body, grammar::Nfa::State from, Lead lead,
                             const text::ReasoningStyle& style);

/// The spellings that these rules ask for: where they are control tokens, a grammar must be able to see them.
std::vector<std::string> marks_of(const text::ReasoningStyle& style);

}  // namespace cadans::serve
