#include "serve/forms/thinking_lead.h"

#include "grammar/free_text.h"

namespace cadans::serve {

namespace {

using grammar::Nfa;
using grammar::RuleId;
using grammar::Rules;

constexpr uint32_t kSpacesMax = 4;  // white space behind a block; it is part of neither

// gpt-oss: thinking is a message of its own, and the answer another.
constexpr const char* kThinks = "<|channel|>analysis<|message|>";
constexpr const char* kThought = "<|end|>";
constexpr const char* kNextTurn = "<|start|>assistant";
constexpr const char* kAnswers = "<|channel|>final<|message|>";

/// A block's text and the mark that closes it: a rule that calls no other, so that all grammars of a model share what
/// is known of it.
RuleId until(Rules& rules, const std::string& mark) {
    Nfa body = rules.body();
    body.accept(grammar::add_text_until(body, 0, mark));
    return rules.add("thinking", std::move(body));
}

Nfa::State spaces(Nfa& body, Nfa::State from) {
    return body.repeat(from, 0, kSpacesMax, [&](Nfa::State at) {
        const Nfa::State next = body.add();
        for (const char c : {' ', '\n'}) body.bytes(at, static_cast<uint8_t>(c), static_cast<uint8_t>(c), next);
        return next;
    });
}

}  // namespace

Nfa::State add_lead(Rules& rules, Nfa& body, Nfa::State from, Lead lead, const text::ReasoningStyle& style) {
    if (lead == Lead::none) return from;
    const RuleId block = until(rules, style.channels ? kThought : style.close);
    const Nfa::State behind = body.add();
    if (lead == Lead::thinking && !style.channels) body.join(from, behind);
    const Nfa::State opened =
        lead == Lead::rest ? from : body.literal(from, style.channels ? kThinks : style.open.c_str());
    Nfa::State closed = body.call(opened, block);
    if (!style.channels) {
        body.join(spaces(body, closed), behind);
        return behind;
    }
    closed = body.literal(closed, kNextTurn);
    body.join(closed, behind);
    if (lead == Lead::thinking) body.join(from, behind);
    return body.literal(behind, kAnswers);
}

std::vector<std::string> marks_of(const text::ReasoningStyle& style) {
    if (style.channels) return {"<|channel|>", "<|message|>", "<|end|>", "<|start|>"};
    return {style.open, style.close};
}

}  // namespace cadans::serve
