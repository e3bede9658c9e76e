#include "grammar/lark_writer.h"

#include <utility>

#include "grammar/lark.h"
#include "grammar/lark_characters.h"

namespace cadans::grammar {
namespace {

constexpr const char* kTooLarge = "this becomes larger than is allowed when it is written out";

/// a: a x | y  is  a: y x*, for every x and y.
Pattern without_left_recursion(RuleId self, Pattern pattern) {
    if (pattern.kind != Pattern::Kind::choice) return pattern;
    Pattern first{.kind = Pattern::Kind::choice}, then{.kind = Pattern::Kind::choice};
    for (Pattern& way : pattern.parts) {
        const bool recursive = way.kind == Pattern::Kind::sequence && !way.parts.empty() &&
                               way.parts[0].kind == Pattern::Kind::call && way.parts[0].rule == self;
        if (recursive) way.parts.erase(way.parts.begin());
        if (!recursive)
            first.parts.push_back(std::move(way));
        else if (!way.parts.empty())
            then.parts.push_back(std::move(way));
    }
    if (then.parts.empty() || first.parts.empty()) return first;
    Pattern out;
    out.parts.push_back(std::move(first));
    out.parts.push_back(Pattern::repeated(std::move(then), 0, Nfa::kEndless));
    return out;
}

/// Lark ignores as much as it can. So that no text is read otherwise than it was written, nothing that is ignored may
/// go on with a character with which a terminal begins.
Status keeps_apart(const std::vector<LarkDefinition>& definitions, const std::vector<LarkIgnored>& ignored) {
    LarkCharacters characters(kLarkIgnored);
    for (const LarkDefinition& one : definitions) characters.define(one.rule, one.pattern);
    CodePointSet begins;
    for (const LarkDefinition& one : definitions) characters.add_first_of_terminals(one.pattern, begins);
    begins.tidy();
    for (const LarkIgnored& one : ignored) {
        CodePointSet goes_on;
        if (characters.longest(one.pattern) > 1) characters.add_all(one.pattern, goes_on);
        if (characters.lost())
            return unsupported("the terminals are too many to compare with what is ignored", one.where);
        goes_on.tidy();
        if (begins.meets(goes_on))
            return unsupported("what is ignored could go on with a character with which a terminal begins", one.where);
    }
    return Ok{};
}

/// Puts what is ignored where it may stand.
void settle(Pattern& pattern, const Pattern& ignored) {
    if (pattern.kind == Pattern::Kind::call && pattern.rule == kLarkIgnored) pattern = ignored;
    for (Pattern& part : pattern.parts) settle(part, ignored);
}

/// The bodies of one grammar, which may not be larger together than is allowed.
class Bodies {
  public:
    explicit Bodies(Rules& rules) : rules_(rules) {}

    Status write(RuleId rule, const Pattern& pattern, const std::string& where) {
        Nfa body = rules_.body();
        body.accept(add_pattern(body, 0, pattern));
        written_ += body.edges().size();
        if (body.full() || written_ > rules_.limits().edges) return bad_input(kTooLarge, where);
        rules_.set(rule, std::move(body));
        return Ok{};
    }

  private:
    Rules& rules_;
    size_t written_ = 0;
};

}  // namespace

Status write_lark(Rules& rules, std::vector<LarkDefinition> definitions, std::vector<LarkIgnored> ignored) {
    Bodies bodies(rules);
    Pattern between;  // nothing
    if (!ignored.empty()) {
        if (Status done = keeps_apart(definitions, ignored); !done) return done;
        Pattern any{.kind = Pattern::Kind::choice};
        for (LarkIgnored& one : ignored) any.parts.push_back(std::move(one.pattern));
        between = {.kind = Pattern::Kind::call, .rule = rules.add("ignored text")};
        if (Status done = bodies.write(between.rule, Pattern::repeated(std::move(any), 0, kIgnoredMax), "line 1");
            !done)
            return done;
    }
    for (LarkDefinition& one : definitions) {
        Pattern pattern = without_left_recursion(one.rule, std::move(one.pattern));
        settle(pattern, between);
        if (Status done = bodies.write(one.rule, pattern, one.where); !done) return done;
    }
    return Ok{};
}

}  // namespace cadans::grammar
