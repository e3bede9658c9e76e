#include "grammar/regex.h"

#include "grammar/pattern.h"
#include "grammar/text_automaton.h"

namespace cadans::grammar {
namespace {

bool has_anchor(const Pattern& pattern) {
    if (pattern.kind == Pattern::Kind::begin || pattern.kind == Pattern::Kind::end) return true;
    for (const Pattern& part : pattern.parts)
        if (has_anchor(part)) return true;
    return false;
}

}  // namespace

Result<RuleId> add_regex(Rules& rules, std::string_view source) {
    const Limits& limits = rules.limits();
    auto pattern = read_regex(source, limits);
    if (!pattern) return std::move(pattern).error();
    // ^ first and $ last say what is so anyway.
    if (pattern->kind == Pattern::Kind::sequence) {
        auto& parts = pattern->parts;
        if (!parts.empty() && parts.front().kind == Pattern::Kind::begin) parts.erase(parts.begin());
        if (!parts.empty() && parts.back().kind == Pattern::Kind::end) parts.pop_back();
    }
    Nfa body = rules.body();
    if (has_anchor(*pattern)) {
        auto automaton = TextAutomaton::of(*pattern, false, limits);
        if (!automaton) return std::move(automaton).error();
        body.accept(automaton->add_raw(body, 0));
    } else {
        body.accept(add_pattern(body, 0, *pattern));
    }
    return rules.add("the pattern", std::move(body));
}

Result<Grammar> regex_grammar(std::string_view source, const Limits& limits) {
    Rules rules(limits);
    auto root = add_regex(rules, source);
    if (!root) return std::move(root).error();
    return rules.compile(*root);
}

}  // namespace cadans::grammar
