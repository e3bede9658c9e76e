#include "serve/grammar_shelf.h"

#include <algorithm>

#include "grammar/gbnf.h"
#include "grammar/json_text.h"
#include "grammar/regex.h"
#include "grammar/schema.h"

namespace cadans::serve {

namespace {

using grammar::Nfa;
using grammar::RuleId;
using grammar::Rules;
using nlohmann::ordered_json;

/// Two forms with one key are the same form.
std::string key_of(const TextForm& form, Lead lead) {
    std::string key = {static_cast<char>('a' + static_cast<int>(form.kind)),
                       static_cast<char>('a' + static_cast<int>(lead))};
    key += form.source;
    if (form.kind == TextForm::Kind::schema)
        key += form.schema.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
    for (const std::string& choice : form.choices) key += std::to_string(choice.size()) + ":" + choice;
    return key;
}

Error placed(Error error, const std::string& field) {
    if (error.code == ErrorCode::too_large) error.code = ErrorCode::bad_input;
    const bool pointer = error.where.starts_with('#');
    const std::string place = error.where.empty() ? "" : (pointer ? "" : ": ") + error.where;
    error.message = field + place + ": " + error.message;
    error.where = pointer ? field + error.where : field;
    return error;
}

Result<RuleId> add_form(Rules& rules, const TextForm& form) {
    switch (form.kind) {
        case TextForm::Kind::schema:
            return grammar::add_schema(rules, form.schema);
        case TextForm::Kind::regex:
            return grammar::add_regex(rules, form.source);
        case TextForm::Kind::gbnf:
            return grammar::add_gbnf(rules, form.source);
        case TextForm::Kind::choice: {
            Nfa body = rules.body();
            const Nfa::State end = body.add();
            for (const std::string& choice : form.choices) body.join(body.literal(0, choice), end);
            body.accept(end);
            return rules.add("the choice", std::move(body));
        }
        default:
            return grammar::JsonRules(rules).object();
    }
}

}  // namespace

GrammarShelf::GrammarShelf(const text::Vocabulary& vocabulary, std::optional<text::ReasoningStyle> reasoning)
    : vocabulary_(vocabulary), reasoning_(std::move(reasoning)) {}

Result<std::shared_ptr<Constraint>> GrammarShelf::get(const TextForm& form, Lead lead) {
    if (form.kind == TextForm::Kind::any) return std::shared_ptr<Constraint>();
    if (!reasoning_) lead = Lead::none;
    std::string key = key_of(form, lead);
    if (key.size() > grammar::Limits{}.source_bytes)
        return bad_input(form.field + ": it has more bytes than are allowed", form.field);
    std::lock_guard guard(lock_);
    const auto found = std::ranges::find(kept_, key, &Kept::key);
    if (found != kept_.end() && !found->grammar->worn()) {
        kept_.splice(kept_.begin(), kept_, found);
        return std::shared_ptr<Constraint>(found->grammar);
    }
    if (found != kept_.end()) kept_.erase(found);
    if (Status ready = need_tokens(); !ready) return placed(std::move(ready).error(), form.field);
    Result<grammar::Grammar> compiled = compile(form, lead);
    if (!compiled) return placed(std::move(compiled).error(), form.field);
    auto made = std::make_shared<AnswerGrammar>(*std::move(compiled), tokens_);
    if (made->begins_complete()) return placed(bad_input("only an empty answer would satisfy this"), form.field);
    kept_.push_front({std::move(key), made});
    if (kept_.size() > kKept) kept_.pop_back();
    return std::shared_ptr<Constraint>(std::move(made));
}

Status GrammarShelf::need_tokens() {
    if (tokens_ != nullptr) return Ok{};
    std::vector<TokenId> marks;
    if (reasoning_)
        for (const std::string& mark : marks_of(*reasoning_))
            if (const std::optional<TokenId> id = vocabulary_.find(mark)) marks.push_back(*id);
    Result<std::shared_ptr<GrammarTokens>> made = GrammarTokens::make(vocabulary_, marks);
    if (!made) return std::move(made).error();
    tokens_ = *std::move(made);
    return Ok{};
}

Result<grammar::Grammar> GrammarShelf::compile(const TextForm& form, Lead lead) const {
    // By itself first where its errors then name lines.
    if (form.kind == TextForm::Kind::gbnf) {
        Result<grammar::Grammar> alone = grammar::gbnf_grammar(form.source);
        if (!alone || lead == Lead::none) return alone;
    }
    Rules rules;
    Result<RuleId> text = add_form(rules, form);
    if (!text) return std::move(text).error();
    if (lead == Lead::none) return rules.compile(*text);
    Nfa body = rules.body();
    const Nfa::State begin = add_lead(rules, body, 0, lead, *reasoning_);
    body.accept(body.call(begin, *text));
    return rules.compile(rules.add("the answer", std::move(body)));
}

}  // namespace cadans::serve
