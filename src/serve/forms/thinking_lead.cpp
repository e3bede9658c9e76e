#include "serve/forms/thinking_lead.h"

#include <array>

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
constexpr const char* kTellsPeople = "<|channel|>commentary<|message|>";
// Whatever parts one message from the next, for whoever reads the answer.
constexpr std::array<std::string_view, 5> kChannelMarks = {"<|channel|>", "<|start|>", "<|end|>", "<|return|>",
                                                           "<|call|>"};

/// A block's text and the mark that closes it: a rule that calls no other, so that all grammars of a model share what
/// is known of it.
RuleId until(Rules& rules, const std::string& mark, bool channels) {
    Nfa body = rules.body();
    grammar::Forbidden forbidden;
    if (channels) forbidden.anywhere = other_channel_marks(mark);
    body.accept(grammar::add_text_until(body, 0, mark, forbidden));
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

std::vector<std::string> other_channel_marks(std::string_view end) {
    std::vector<std::string> out;
    for (const std::string_view mark : kChannelMarks)
        if (mark != end) out.emplace_back(mark);
    return out;
}

BehindLead add_lead(Rules& rules, Nfa& body, Nfa::State from, Lead lead, const text::ReasoningStyle& style,
                    bool spaced) {
    if (lead == Lead::none) return {from, from};
    const RuleId block = until(rules, style.channels ? kThought : style.close, style.channels);
    const Nfa::State behind = body.add();
    if (lead == Lead::thinking && !style.channels) body.join(from, behind);
    const Nfa::State opened =
        lead == Lead::rest ? from : body.literal(from, style.channels ? kThinks : style.open.c_str());
    Nfa::State closed = body.call(opened, block);
    if (!style.channels) {
        body.join(spaced ? closed : spaces(body, closed), behind);
        return {behind, behind};
    }
    closed = body.literal(closed, kNextTurn);
    body.join(closed, behind);
    if (lead == Lead::thinking) body.join(from, behind);
    return {body.literal(behind, kAnswers), behind};
}

Nfa::State add_preamble(Rules& rules, Nfa& body, Nfa::State from) {
    const Nfa::State told = body.call(body.literal(from, kTellsPeople), until(rules, kThought, true));
    return body.literal(told, kNextTurn);
}

std::vector<std::string> marks_of(const text::ReasoningStyle& style) {
    if (style.channels) return {"<|channel|>", "<|message|>", "<|end|>", "<|start|>"};
    std::vector<std::string> out = {style.open, style.close};
    // An opening may be a mark and a word behind it.
    if (const size_t end = style.open.find('>'); end != style.open.npos && end + 1 < style.open.size())
        out.push_back(style.open.substr(0, end + 1));
    return out;
}

}  // namespace cadans::serve
