#include "serve/forms/tool_grammar.h"

#include <vector>

#include "grammar/free_text.h"
#include "grammar/json_text.h"
#include "grammar/schema.h"

namespace cadans::serve {

namespace {

using grammar::Nfa;
using grammar::RuleId;
using grammar::Rules;

constexpr uint32_t kBetweenMax = 2;  // line ends between two calls

/// Writes the parts of calls, each rule once.
class CallWriter {
  public:
    CallWriter(Rules& rules, CallStyle style) : rules_(rules), json_(rules), style_(style), bare_(bare_marks(style)) {
        if (bare_ != nullptr) options_.quote = bare_->quote;
    }

    /// One call of any of the tools, without the mark in front of the first.
    Result<RuleId> call(const std::vector<Tool>& tools) {
        Nfa body = rules_.body();
        const Nfa::State end = body.add();
        for (const Tool& tool : tools) {
            rules_.within(tool.field);
            Result<RuleId> arguments = grammar::add_schema(rules_, tool.parameters, options_);
            rules_.within("");
            if (!arguments) {
                Error error = std::move(arguments).error();
                error.where = tool.field + error.where;
                return error;
            }
            if (style_ == CallStyle::named)
                body.call(body.literal(0, tool.name + "[ARGS]"), *arguments, end);
            else if (style_ == CallStyle::channel)
                body.call(body.literal(0, tool.name + " <|constrain|>json<|message|>"), *arguments, end);
            else if (bare_ != nullptr)
                body.call(body.literal(0, "call:" + tool.name), *arguments, end);
            else
                body.join(object(body, 0, tool.name, *arguments), end);
        }
        body.accept(end);
        return rules_.add("a call", std::move(body));
    }

    /// From behind the mark to the end of the last call.
    Nfa::State calls(Nfa& body, Nfa::State from, RuleId call, bool parallel) {
        if (bare_ != nullptr) {
            const Nfa::State end = body.literal(body.call(from, call), bare_->close), over = body.add();
            if (parallel) body.join(body.literal(end, bare_->open), from);
            body.join(end, over);
            body.join(body.literal(end, bare_->result), over);
            return over;
        }
        switch (style_) {
            case CallStyle::tagged: {
                Nfa::State at = body.call(spaces(body, from), call);
                const Nfa::State end = body.literal(spaces(body, at), "</tool_call>");
                if (parallel) body.join(body.literal(spaces(body, end), mark_of(style_)), from);
                return end;
            }
            case CallStyle::listed: {
                const Nfa::State open = body.add();
                body.join(from, open);
                body.bytes(from, ' ', ' ', open);
                const Nfa::State first = body.literal(open, "["), at = body.call(first, call);
                if (parallel) body.call(body.literal(at, ","), json_.space(), first);
                return body.literal(at, "]");
            }
            case CallStyle::named: {
                const Nfa::State end = body.call(from, call);
                if (parallel) body.join(body.literal(end, mark_of(style_)), from);
                return end;
            }
            default:
                return body.call(from, call);
        }
    }

  private:
    /// {"name": "…", "arguments": …}, with the white space of other JSON.
    Nfa::State object(Nfa& body, Nfa::State from, const std::string& name, RuleId arguments) {
        const auto colon = [&](Nfa::State at) {
            const Nfa::State behind = body.literal(at, ":"), value = body.add();
            body.join(behind, value);
            body.bytes(behind, ' ', ' ', value);
            return value;
        };
        Nfa::State at = body.call(body.literal(from, "{"), json_.space());
        at = body.literal(colon(body.literal(at, "\"name\"")), grammar::json_string(name));
        at = body.call(body.literal(at, ","), json_.space());
        at = colon(body.literal(at, "\"" + std::string(arguments_key(style_)) + "\""));
        at = body.call(at, arguments);
        return body.literal(body.call(at, json_.space()), "}");
    }

    Nfa::State spaces(Nfa& body, Nfa::State from) {
        return body.repeat(from, 0, kBetweenMax, [&](Nfa::State at) { return body.bytes(at, '\n', '\n'); });
    }

    Rules& rules_;
    grammar::JsonRules json_;
    CallStyle style_;
    const BareMarks* bare_;
    grammar::SchemaOptions options_;
};

}  // namespace

Status add_calls(Rules& rules, Nfa& body, BehindLead from, const ToolUse& use, CallStyle style,
                 std::optional<RuleId> text, std::string_view opens) {
    CallWriter writer(rules, style);
    Result<RuleId> call = writer.call(use.tools);
    if (!call) return std::move(call).error();
    const Nfa::State marked = body.add();
    body.accept(writer.calls(body, marked, *call, use.parallel));
    // Where calls begin: behind their mark, or at once.
    const bool bare = style == CallStyle::bare;
    const bool messages = from.text != from.calls;
    body.join(body.literal(from.calls, mark_of(style)), marked);
    if (bare) body.join(from.calls, marked);
    if (use.choice == ToolChoice::required) return Ok{};
    if (text) {
        body.accept(body.call(from.text, *text));
        return Ok{};
    }
    if (messages) body.join(body.literal(add_preamble(rules, body, from.calls), mark_of(style)), marked);
    // Words that a reader would take for a bare call are none: an object at the beginning of the text, or behind what
    // it takes for a block of thinking.
    grammar::Forbidden forbidden;
    if (bare) forbidden.first.emplace_back("{");
    if (bare && !opens.empty()) forbidden.first.emplace_back(opens);
    // With channels whatever parts messages would part this one for its reader, and a call follows the first of them.
    const std::string_view mark = mark_of(style), parts = messages ? mark.substr(0, mark.find('>') + 1) : mark;
    if (messages) forbidden.anywhere = other_channel_marks(parts);
    Nfa free = rules.body();
    free.accept(grammar::add_text_until(free, 0, parts, forbidden));
    const RuleId before = rules.add("text in front of calls", std::move(free));
    rules.set_free(before);
    body.accept(from.text);  // an answer without a word
    body.join(body.literal(body.call(from.text, before), mark.substr(parts.size())), marked);
    return Ok{};
}

}  // namespace cadans::serve
