#include "serve/forms/grammar_shelf.h"

#include <algorithm>
#include <array>
#include <vector>

#include "grammar/gbnf.h"
#include "grammar/json_text.h"
#include "grammar/lark.h"
#include "grammar/matcher.h"
#include "grammar/regex.h"
#include "grammar/schema.h"
#include "serve/forms/tool_grammar.h"

namespace cadans::serve {

namespace {

using grammar::Nfa;
using grammar::RuleId;
using grammar::Rules;
using nlohmann::ordered_json;

constexpr size_t kSpacePlacesMax = 256;  // to which white space at the beginning of a form may lead

/// Two forms with one key are the same form: in front of each part stands its length, so that none can look like two.
std::string key_of(const TextForm& form, const ToolUse& tools, Lead lead) {
    std::string key = {static_cast<char>('a' + static_cast<int>(form.kind)),
                       static_cast<char>('a' + static_cast<int>(lead))};
    const auto add = [&key](const std::string& part) { key += std::to_string(part.size()) + ":" + part; };
    const auto add_json = [&add](const ordered_json& part) {
        add(part.dump(-1, ' ', false, ordered_json::error_handler_t::replace));
    };
    add(form.source);
    if (form.kind == TextForm::Kind::schema) add_json(form.schema);
    key += std::to_string(form.choices.size()) + ";";
    for (const std::string& choice : form.choices) add(choice);
    if (tools.choice == ToolChoice::none) return key;
    key += tools.choice == ToolChoice::required ? "required " : "tools ";
    key += tools.parallel ? "many" : "one";
    for (const Tool& tool : tools.tools) {
        add(tool.name);
        add_json(tool.parameters);
    }
    return key;
}

/// `field` comes in front of a place that does not name its own.
Error placed(Error error, const std::string& field) {
    if (error.where.starts_with("tools")) {
        error.message = error.where + ": " + error.message;
        return error;
    }
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
        case TextForm::Kind::lark:
            return grammar::add_lark(rules, form.source);
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

/// Whether texts of this form are what their source says down to the first byte; the others are JSON.
bool begins_anyhow(const TextForm& form) {
    return form.kind == TextForm::Kind::regex || form.kind == TextForm::Kind::gbnf ||
           form.kind == TextForm::Kind::lark || form.kind == TextForm::Kind::choice;
}

/// By itself, so that errors of grammars name lines.
Result<grammar::Grammar> compile_alone(const TextForm& form, const grammar::Limits& limits) {
    if (form.kind == TextForm::Kind::gbnf) return grammar::gbnf_grammar(form.source, limits);
    if (form.kind == TextForm::Kind::lark) return grammar::lark_grammar(form.source, limits);
    Rules rules(limits);
    Result<RuleId> text = add_form(rules, form);
    if (!text) return std::move(text).error();
    return rules.compile(*text);
}

constexpr std::array kSpaces = {" ", "\t", "\r", "\n"};

bool begins_with_space(const grammar::Grammar& text) {
    grammar::Stacks stacks(text);
    return std::ranges::any_of(kSpaces, [&](const char* space) { return grammar::Matcher(stacks).accept(space); });
}

/// Whether a text may begin, white space aside, with what begins a call.
bool may_begin_with(const grammar::Grammar& text, std::string_view mark) {
    grammar::Stacks stacks(text);
    std::vector<grammar::Matcher> places = {grammar::Matcher(stacks)};
    for (size_t i = 0; i < places.size(); ++i) {
        if (grammar::Matcher begun = places[i]; begun.accept(mark)) return true;
        for (const char* space : kSpaces) {
            grammar::Matcher next = places[i];
            if (!next.accept(space) || std::ranges::find(places, next) != places.end()) continue;
            if (places.size() == kSpacePlacesMax) return true;  // perhaps
            places.push_back(next);
        }
    }
    return false;
}

}  // namespace

GrammarShelf::GrammarShelf(const text::Vocabulary& vocabulary, std::optional<text::ReasoningStyle> reasoning,
                           CallStyle calls, size_t bytes_max)
    : vocabulary_(vocabulary), reasoning_(std::move(reasoning)), calls_(calls), bytes_max_(bytes_max) {}

Result<std::shared_ptr<AnswerGrammar>> GrammarShelf::get(const TextForm& form, const ToolUse& tools, Lead lead) {
    const bool calls = tools.choice != ToolChoice::none;
    if (form.kind == TextForm::Kind::any && !calls) return std::shared_ptr<AnswerGrammar>();
    const std::string field = form.kind == TextForm::Kind::any ? "tools" : form.field;
    if (!reasoning_) lead = Lead::none;
    std::string key = key_of(form, tools, lead);
    if (key.size() > grammar::Limits{}.source_bytes)
        return bad_input(field + ": it has more bytes than are allowed", field);
    std::lock_guard guard(lock_);
    drop_worn();
    const auto found = std::ranges::find(kept_, key, &Kept::key);
    if (found != kept_.end()) {
        kept_.splice(kept_.begin(), kept_, found);
        std::shared_ptr<AnswerGrammar> known = found->grammar;
        drop_beyond_bounds();
        return known;
    }
    // A refusal names fields, which a grammar does not know.
    std::string asked = key + "\n" + field;
    for (const Tool& tool : tools.tools) asked += "\n" + tool.field;
    if (const auto refused = std::ranges::find(refused_, asked, &Refused::key); refused != refused_.end()) {
        refused_.splice(refused_.begin(), refused_, refused);
        return refused->error;
    }
    if (Status ready = need_tokens(); !ready) return placed(std::move(ready).error(), field);
    Result<Compiled> compiled = compile(form, tools, lead);
    if (!compiled) return keep_refusal(std::move(asked), placed(std::move(compiled).error(), field));
    auto made = std::make_shared<AnswerGrammar>(std::move(compiled->grammar), tokens_, compiled->spaced);
    if (made->begins_complete())
        return keep_refusal(std::move(asked), placed(bad_input("only an empty answer would satisfy this"), field));
    kept_.push_front({std::move(key), made});
    drop_beyond_bounds();
    return made;
}

void GrammarShelf::tidy() {
    const std::unique_lock guard(lock_, std::try_to_lock);
    if (!guard) return;
    drop_worn();
    drop_beyond_bounds();
}

Error GrammarShelf::keep_refusal(std::string key, Error error) {
    refused_.push_front({std::move(key), error});
    size_t bytes = 0, count = 0;
    auto at = refused_.begin();
    for (; at != refused_.end() && count < kKept; ++at, ++count) {
        bytes += at->key.size() + at->error.message.size() + at->error.where.size();
        if (bytes > kRefusalBytesMax) break;
    }
    refused_.erase(at, refused_.end());
    return error;
}

/// Answers that still use one keep it until they end.
void GrammarShelf::drop_worn() {
    std::erase_if(kept_, [](const Kept& kept) { return kept.grammar->worn(); });
}

void GrammarShelf::drop_beyond_bounds() {
    size_t bytes = 0, count = 0;
    auto at = kept_.begin();
    for (; at != kept_.end() && count < kKept; ++at, ++count) {
        bytes += at->bytes();
        if (bytes > bytes_max_ && count > 0) break;
    }
    kept_.erase(at, kept_.end());
}

Status GrammarShelf::need_tokens() {
    if (tokens_ != nullptr) return Ok{};
    std::vector<std::string> spellings = call_marks(calls_);
    if (reasoning_)
        for (std::string& mark : marks_of(*reasoning_)) spellings.push_back(std::move(mark));
    std::vector<TokenId> marks;
    for (const std::string& mark : spellings)
        if (const std::optional<TokenId> id = vocabulary_.find(mark)) marks.push_back(*id);
    Result<std::shared_ptr<GrammarTokens>> made = GrammarTokens::make(vocabulary_, marks);
    if (!made) return std::move(made).error();
    tokens_ = *std::move(made);
    return Ok{};
}

Result<GrammarShelf::Compiled> GrammarShelf::compile(const TextForm& form, const ToolUse& tools, Lead lead) {
    compiled_++;
    const bool calls = tools.choice != ToolChoice::none;
    const bool alone = !calls && lead == Lead::none;
    const grammar::Limits limits{.alphabet = tokens_->alphabet()};
    bool spaced = false;
    if (begins_anyhow(form)) {
        Result<grammar::Grammar> by_itself = compile_alone(form, limits);
        if (!by_itself) return std::move(by_itself).error();
        if (alone) return Compiled{*std::move(by_itself), false};
        spaced = lead != Lead::none && begins_with_space(*by_itself);
        const bool may_call = tools.choice == ToolChoice::automatic && calls_ != CallStyle::bare;
        if (may_call && may_begin_with(*by_itself, mark_of(calls_)))
            return unsupported("with tools that may be called, no text may begin as a call does, with " +
                               std::string(mark_of(calls_)));
    }
    Rules rules(limits);
    std::optional<RuleId> text;
    if (form.kind != TextForm::Kind::any) {
        Result<RuleId> added = add_form(rules, form);
        if (!added) return std::move(added).error();
        text = *added;
    }
    RuleId root = text.value_or(0);
    if (!alone) {
        Nfa body = rules.body();
        if (Status done = add_answer(rules, body, tools, lead, text, spaced); !done) return std::move(done).error();
        root = rules.add("the answer", std::move(body));
    }
    Result<grammar::Grammar> compiled = rules.compile(root);
    if (!compiled) return std::move(compiled).error();
    return Compiled{*std::move(compiled), spaced};
}

Status GrammarShelf::add_answer(Rules& rules, Nfa& body, const ToolUse& tools, Lead lead, std::optional<RuleId> text,
                                bool spaced) const {
    const BehindLead begin =
        reasoning_ ? add_lead(rules, body, 0, lead, *reasoning_, spaced) : BehindLead{.text = 0, .calls = 0};
    if (tools.choice == ToolChoice::none) {
        body.accept(body.call(begin.text, *text));
        return Ok{};
    }
    // A bare call and a form could begin alike.
    if (text && calls_ == CallStyle::bare && tools.choice == ToolChoice::automatic)
        return unsupported("a form of the text and tools that may be called cannot go together with this model");
    const std::string_view opens = lead == Lead::thinking ? std::string_view(reasoning_->open) : std::string_view();
    return add_calls(rules, body, begin, tools, calls_, text, opens);
}

}  // namespace cadans::serve
