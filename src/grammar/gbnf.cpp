#include "grammar/gbnf.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "base/hex.h"
#include "grammar/one_source.h"
#include "grammar/pattern.h"

namespace cadans::grammar {
namespace {

bool is_name(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

class Reader {
  public:
    Reader(std::string_view source, Rules& rules)
        : whole_(source), rest_(source), limits_(rules.limits()), rules_(rules) {}

    /// The rule that is the answer.
    Result<RuleId> read() {
        if (whole_.size() > limits_.source_bytes)
            return bad_input(
                fmt::format("the grammar has {} bytes, {} are allowed", whole_.size(), limits_.source_bytes));
        if (whole_.find('\0') != std::string_view::npos) return refuse("a zero byte");
        space(true);
        while (!rest_.empty()) {
            if (Status done = rule(); !done) return done.error();
            space(true);
        }
        for (const auto& [name, at] : names_)
            if (!at.defined) return bad_input(fmt::format("the rule '{}' is used but not defined", name), at.where);
        const auto root = names_.find("root");
        if (root == names_.end()) return bad_input("there is no rule 'root'", "line 1");
        return root->second.rule;
    }

    /// The same with the line of the rule that it names.
    Error placed(Error error) const {
        const auto at = names_.find(error.where);
        if (at == names_.end()) return error;
        return bad_input(fmt::format("the rule '{}': {}", error.where, error.message), at->second.where);
    }

  private:
    struct Known {
        RuleId rule = 0;
        bool defined = false;
        std::string where;
    };

    std::string here() const {
        const size_t read = whole_.size() - rest_.size();
        return fmt::format("line {}",
                           1 + std::count(whole_.begin(), whole_.begin() + static_cast<std::ptrdiff_t>(read), '\n'));
    }
    Error refuse(std::string why) const { return bad_input(std::move(why), here()); }

    bool skip(std::string_view text) {
        if (!rest_.starts_with(text)) return false;
        rest_.remove_prefix(text.size());
        return true;
    }
    void space(bool lines) {
        while (!rest_.empty()) {
            const char c = rest_[0];
            if (c == '#')
                rest_.remove_prefix(std::min(rest_.find_first_of("\r\n"), rest_.size()));
            else if (c == ' ' || c == '\t' || (lines && (c == '\r' || c == '\n')))
                rest_.remove_prefix(1);
            else
                break;
        }
    }
    std::string name() {
        size_t size = 0;
        while (size < rest_.size() && is_name(rest_[size])) size++;
        const std::string out(rest_.substr(0, size));
        rest_.remove_prefix(size);
        return out;
    }
    Known& known(const std::string& name) {
        const auto [at, fresh] = names_.try_emplace(name);
        if (fresh) at->second = {rules_.add(name), false, here()};
        return at->second;
    }

    Status rule() {
        const std::string title = name();
        if (title.empty()) return refuse("expected the name of a rule");
        Known& rule = known(title);
        if (rule.defined) return refuse(fmt::format("the rule '{}' stands twice", title));
        rule.defined = true;
        rule.where = here();
        const RuleId id = rule.rule;
        space(false);
        if (!skip("::=")) return refuse("expected ::= behind the name");
        space(true);
        auto pattern = choice(0);
        if (!pattern) return std::move(pattern).error();
        if (!rest_.empty() && rest_[0] != '\n' && rest_[0] != '\r') return refuse("expected the end of the line");
        Nfa body = rules_.body();
        body.accept(add_pattern(body, 0, *pattern));
        written_ += body.edges().size();
        if (body.full() || written_ > limits_.edges)
            return refuse("this becomes larger than is allowed when it is written out");
        rules_.set(id, std::move(body));
        return Ok{};
    }

    Result<Pattern> choice(uint32_t depth) {
        if (depth > limits_.depth) return refuse(fmt::format("groups are nested deeper than {}", limits_.depth));
        Pattern out;
        out.kind = Pattern::Kind::choice;
        do {
            space(true);
            auto part = sequence(depth);
            if (!part) return part;
            out.parts.push_back(*std::move(part));
        } while (skip("|"));
        return out;
    }

    Result<Pattern> sequence(uint32_t depth) {
        Pattern out;
        while (true) {
            space(depth > 0);
            if (rest_.empty() || rest_[0] == '|' || rest_[0] == ')' || rest_[0] == '\n' || rest_[0] == '\r') return out;
            auto part = element(depth);
            if (!part) return part;
            auto whole = repeats(*std::move(part), depth);
            if (!whole) return whole;
            out.parts.push_back(*std::move(whole));
        }
    }

    Result<Pattern> element(uint32_t depth) {
        if (skip("\"")) return literal();
        if (skip("[")) return bracket();
        if (skip(".")) return Pattern::of({{0, kCodePointMax}});
        if (skip("(")) {
            auto inside = choice(depth + 1);
            if (!inside) return inside;
            space(true);
            if (!skip(")")) return refuse("a ( without its )");
            return inside;
        }
        if (rest_[0] == '<' || rest_[0] == '!') return unsupported("tokens in a grammar are not supported", here());
        if (!is_name(rest_[0])) return refuse("expected a literal, a class, a group or the name of a rule");
        Pattern out;
        out.kind = Pattern::Kind::call;
        out.rule = known(name()).rule;
        return out;
    }

    Result<Pattern> repeats(Pattern part, uint32_t depth) {
        for (int times = 0;; times++) {
            space(depth > 0);
            if (skip("*"))
                part = Pattern::repeated(std::move(part), 0, Nfa::kEndless);
            else if (skip("+"))
                part = Pattern::repeated(std::move(part), 1, Nfa::kEndless);
            else if (skip("?"))
                part = Pattern::repeated(std::move(part), 0, 1);
            else if (skip("{")) {
                uint32_t min = 0, max = 0;
                if (Status done = counts(min, max); !done) return done.error();
                part = Pattern::repeated(std::move(part), min, max);
            } else
                return part;
            if (times >= 8) return refuse("a repeat of a repeat of a repeat");
        }
    }

    std::optional<uint32_t> number() {
        size_t digits = 0;
        uint64_t value = 0;
        for (; digits < rest_.size() && rest_[digits] >= '0' && rest_[digits] <= '9'; digits++)
            value = std::min<uint64_t>(value * 10 + static_cast<uint64_t>(rest_[digits] - '0'), UINT32_MAX - 1);
        if (digits == 0) return std::nullopt;
        rest_.remove_prefix(digits);
        return static_cast<uint32_t>(value);
    }

    Status counts(uint32_t& min, uint32_t& max) {
        space(false);
        const auto low = number();
        space(false);
        const bool comma = skip(",");
        space(false);
        const auto high = comma ? number() : low;
        space(false);
        if (!skip("}")) return refuse("a { without its }");
        if (!low && !high) return refuse("a { } without a number");
        min = low.value_or(0);
        max = high.value_or(Nfa::kEndless);
        if (min > max) return refuse("a repeat whose least is above its most");
        if (min > limits_.edges || (max != Nfa::kEndless && max > limits_.edges)) return refuse("a repeat of too many");
        return Ok{};
    }

    Result<uint32_t> character() {
        if (rest_.empty()) return refuse("a quote or bracket without its end");
        if (!skip("\\")) {
            const int64_t c = take_character(rest_);
            if (c < 0) return refuse("not valid UTF-8");
            return static_cast<uint32_t>(c);
        }
        const char c = rest_.empty() ? ' ' : rest_[0];
        if (!rest_.empty()) rest_.remove_prefix(1);
        switch (c) {
            case 'x':
                return hex(2);
            case 'u':
                return hex(4);
            case 'U':
                return hex(8);
            case 't':
                return uint32_t{'\t'};
            case 'r':
                return uint32_t{'\r'};
            case 'n':
                return uint32_t{'\n'};
            case '\\':
            case '"':
            case '[':
            case ']':
                return static_cast<uint32_t>(c);
            default:
                return refuse("an escape that means nothing");
        }
    }

    Result<uint32_t> hex(size_t digits) {
        uint32_t value = 0;
        for (size_t i = 0; i < digits; i++) {
            const int digit = i < rest_.size() ? hex_digit(rest_[i]) : -1;
            if (digit < 0 || value > kCodePointMax)
                return refuse("an escape with too few hexadecimal digits, or beyond Unicode");
            value = value * 16 + static_cast<uint32_t>(digit);
        }
        rest_.remove_prefix(digits);
        if (value > kCodePointMax || (value >= 0xD800 && value <= 0xDFFF))
            return refuse("an escape for what is no character");
        return value;
    }

    Result<Pattern> literal() {
        Pattern out;
        while (!skip("\"")) {
            auto c = character();
            if (!c) return std::move(c).error();
            out.parts.push_back(Pattern::of({{*c, *c}}));
        }
        return out;
    }

    Result<Pattern> bracket() {
        const bool negated = skip("^");
        CodePointSet set;
        while (!skip("]")) {
            auto low = character();
            if (!low) return std::move(low).error();
            uint32_t hi = *low;
            if (rest_.size() > 1 && rest_[0] == '-' && rest_[1] != ']') {
                rest_.remove_prefix(1);
                auto high = character();
                if (!high) return std::move(high).error();
                if (*high < *low) return refuse("a range without order");
                hi = *high;
            }
            set.add(*low, hi);
        }
        set.tidy();
        return Pattern::of(negated ? set.complement() : set);
    }

    std::string_view whole_, rest_;
    const Limits& limits_;
    Rules& rules_;
    std::map<std::string, Known> names_;
    size_t written_ = 0;
};

}  // namespace

Result<RuleId> add_gbnf(Rules& rules, std::string_view source) { return Reader(source, rules).read(); }

Result<Grammar> gbnf_grammar(std::string_view source, const Limits& limits) {
    return grammar_of_source<Reader>(source, limits);
}

}  // namespace cadans::grammar
