#include "grammar/lark_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/hex.h"
#include "grammar/lark.h"
#include "grammar/lark_terminals.h"
#include "grammar/schema.h"

namespace cadans::grammar {
namespace {

bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
bool is_name(char c) { return (c >= 'a' && c <= 'z') || is_upper(c) || (c >= '0' && c <= '9') || c == '_'; }

/// Names of terminals are in capitals.
bool is_terminal(std::string_view name) {
    const size_t first = name.find_first_not_of('_');
    return first != name.npos && is_upper(name[first]);
}

Pattern call(RuleId rule) { return {.kind = Pattern::Kind::call, .rule = rule}; }

/// One character, or either case of an ASCII letter.
Pattern character(uint32_t c, bool any_case) {
    CodePointSet set = {{c, c}};
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (any_case && letter) set.add(c ^ 0x20, c ^ 0x20);
    set.tidy();
    return Pattern::of(std::move(set));
}

}  // namespace

Result<RuleId> LarkReader::read() {
    if (whole_.size() > limits_.source_bytes)
        return bad_input(fmt::format("the grammar has {} bytes, {} are allowed", whole_.size(), limits_.source_bytes));
    if (whole_.find('\0') != std::string_view::npos) return refuse("a zero byte");
    space(true);
    while (!rest_.empty()) {
        if (Status done = statement(); !done) return done.error();
        if (rules_.full()) return refuse("this becomes larger than is allowed when it is written out");
        space(true);
    }
    for (const auto& [name, at] : names_)
        if (!at.defined) return bad_input(fmt::format("'{}' is used but not defined", name), at.where);
    const auto root = names_.find("start");
    if (root == names_.end()) return bad_input("there is no rule 'start'", "line 1");
    if (Status done = write_lark(rules_, std::move(definitions_), std::move(ignored_)); !done) return done.error();
    return root->second.rule;
}

Error LarkReader::placed(Error error) const {
    const auto at = names_.find(error.where);
    if (at == names_.end()) return error;
    return bad_input(fmt::format("'{}': {}", error.where, error.message), at->second.where);
}

std::string LarkReader::here() const {
    const size_t read = whole_.size() - rest_.size();
    return fmt::format("line {}",
                       1 + std::count(whole_.begin(), whole_.begin() + static_cast<std::ptrdiff_t>(read), '\n'));
}

bool LarkReader::skip(std::string_view text) {
    if (!rest_.starts_with(text)) return false;
    rest_.remove_prefix(text.size());
    return true;
}

void LarkReader::space(bool lines) {
    while (!rest_.empty()) {
        const char c = rest_[0];
        if (c == '#' || rest_.starts_with("//"))
            rest_.remove_prefix(std::min(rest_.find_first_of("\r\n"), rest_.size()));
        else if (c == ' ' || c == '\t' || (lines && (c == '\r' || c == '\n')))
            rest_.remove_prefix(1);
        else
            break;
    }
}

std::string LarkReader::name() {
    size_t size = 0;
    while (size < rest_.size() && is_name(rest_[size])) size++;
    const std::string out(rest_.substr(0, size));
    rest_.remove_prefix(size);
    return out;
}

LarkReader::Known& LarkReader::known(const std::string& name) {
    const auto [at, fresh] = names_.try_emplace(name);
    if (fresh) at->second = {rules_.add(name), false, here()};
    return at->second;
}

/// At the end of a line, unless the next one goes on with an alternative.
bool LarkReader::ends_line() {
    space(false);
    if (rest_.empty()) return true;
    if (rest_[0] != '\n' && rest_[0] != '\r') return false;
    const std::string_view before = rest_;
    space(true);
    if (rest_.starts_with("|")) return false;
    rest_ = before;
    return true;
}

Status LarkReader::statement() {
    if (rest_[0] == '%') return directive();
    if (rest_[0] == '@' || rest_[0] == '<') return cannot("references to tokens and other grammars are not supported");
    if (skip("?") || skip("!")) skip("!");
    return definition();
}

Status LarkReader::directive() {
    if (skip("%import")) return import();
    if (skip("%llguidance")) {
        space(false);
        auto options = braces();
        if (!options) return options.error();
        if (options->find('"') != options->npos) return cannot("options of %llguidance are not supported");
        return Ok{};
    }
    const std::string where = here();
    if (!skip("%ignore")) return cannot("of directives, %import, %ignore and %json are read");
    space(false);
    auto what = choice(true, 0);
    if (!what) return std::move(what).error();
    if (!ends_line()) return refuse("expected the end of the line");
    ignored_.push_back({*std::move(what), where});
    return Ok{};
}

Status LarkReader::import() {
    space(false);
    if (!skip("common")) return cannot("only common is imported from");
    space(false);
    if (skip(".")) {
        const std::string title = name();
        std::string alias = title;
        space(false);
        if (skip("->")) {
            space(false);
            alias = name();
        }
        return import_one(title, alias);
    }
    if (!skip("(")) return refuse("expected a name behind common");
    do {
        space(true);
        const std::string title = name();
        if (Status done = import_one(title, title); !done) return done;
        space(true);
    } while (skip(","));
    if (!skip(")")) return refuse("a ( without its )");
    return Ok{};
}

Status LarkReader::import_one(const std::string& title, const std::string& alias) {
    const auto source = lark_common(title);
    if (!source) return refuse(fmt::format("common has no '{}'", title));
    if (!is_terminal(alias)) return refuse("a terminal's name is in capitals");
    auto read = read_regex(*source, limits_, {.python = true});
    if (!read) return std::move(read).error();
    return define(alias, *std::move(read), here());
}

Status LarkReader::definition() {
    const std::string where = here(), title = name();
    if (title.empty()) return refuse("expected the name of a rule or terminal");
    if (Status done = attributes(); !done) return done;
    if (skip("{")) return cannot("templates are not supported");
    if (skip(".")) {
        skip("-");
        uint32_t priority = 0;
        if (Status done = number(priority); !done) return done;
    }
    space(false);
    if (!skip(":")) return refuse("expected : behind the name");
    // An alternative may stand on the next line.
    space(false);
    const std::string_view before = rest_;
    space(true);
    if (!skip("|")) rest_ = before;
    auto pattern = choice(is_terminal(title), 0);
    if (!pattern) return std::move(pattern).error();
    if (!ends_line()) return refuse("expected the end of the line");
    return define(title, *std::move(pattern), where);
}

Status LarkReader::attributes() {
    if (!skip("[")) return Ok{};
    const size_t end = rest_.find_first_of("]\n");
    if (end == rest_.npos || rest_[end] != ']') return refuse("a [ without its ]");
    const std::string_view inside = rest_.substr(0, end);
    if (!inside.starts_with("capture") || inside.find(',') != inside.npos)
        return cannot("attributes of a rule, but for capture, are not supported");
    rest_.remove_prefix(end + 1);
    return Ok{};
}

Status LarkReader::define(const std::string& title, Pattern pattern, std::string where) {
    Known& one = known(title);
    if (one.defined) return bad_input(fmt::format("'{}' stands twice", title), where);
    one.defined = true;
    one.where = where;
    definitions_.push_back({one.rule, std::move(pattern), std::move(where)});
    return Ok{};
}

Result<Pattern> LarkReader::choice(bool terminal, uint32_t depth) {
    if (depth > limits_.depth) return refuse(fmt::format("groups are nested deeper than {}", limits_.depth));
    Pattern out{.kind = Pattern::Kind::choice};
    while (true) {
        auto part = sequence(terminal, depth);
        if (!part) return part;
        out.parts.push_back(*std::move(part));
        if (skip("->")) {
            space(false);
            if (name().empty()) return refuse("expected a name behind ->");
        }
        if (depth > 0)
            space(true);
        else if (ends_line())
            return out;
        if (!skip("|")) return out;
    }
}

Result<Pattern> LarkReader::sequence(bool terminal, uint32_t depth) {
    Pattern out;
    while (true) {
        space(depth > 0);
        if (rest_.empty() || rest_[0] == '|' || rest_[0] == ')' || rest_[0] == ']' || rest_[0] == '\n' ||
            rest_[0] == '\r' || rest_.starts_with("->"))
            return out;
        auto part = element(terminal, depth);
        if (!part) return part;
        auto whole = repeated(*std::move(part));
        if (!whole) return whole;
        out.parts.push_back(*std::move(whole));
    }
}

Result<Pattern> LarkReader::element(bool terminal, uint32_t depth) {
    if (rest_[0] == '"') return text(terminal);
    if (rest_[0] == '/') {
        auto read = pattern();
        if (!read || terminal) return read;
        Pattern out;
        out.parts = {call(kLarkIgnored), *std::move(read)};
        return out;
    }
    if (rest_.starts_with("%json")) {
        if (terminal) return refuse("%json is for rules");
        return schema();
    }
    for (const auto& [open, close] : {std::pair{"(", ")"}, std::pair{"[", "]"}}) {
        if (!skip(open)) continue;
        auto inside = choice(terminal, depth + 1);
        if (!inside) return inside;
        space(true);
        if (!skip(close)) return refuse(fmt::format("a {} without its {}", open, close));
        if (*open == '[') return Pattern::repeated(*std::move(inside), 0, 1);
        return inside;
    }
    if (rest_[0] == '<' || rest_[0] == '@') return cannot("references to tokens and other grammars are not supported");
    if (rest_[0] == '~' || rest_[0] == '&' || rest_[0] == '%') return cannot("this operator is not supported");
    if (!is_name(rest_[0])) return refuse("expected a string, a pattern, a group or a name");
    return reference(terminal);
}

Result<Pattern> LarkReader::repeated(Pattern part) {
    space(false);
    if (skip("*")) return Pattern::repeated(std::move(part), 0, Nfa::kEndless);
    if (skip("+")) return Pattern::repeated(std::move(part), 1, Nfa::kEndless);
    if (skip("?")) return Pattern::repeated(std::move(part), 0, 1);
    if (!skip("~")) return part;
    uint32_t min = 0, max = 0;
    space(false);
    if (Status done = number(min); !done) return done.error();
    max = min;
    space(false);
    if (skip("..")) {
        space(false);
        if (Status done = number(max); !done) return done.error();
    }
    if (min > max) return refuse("a repeat whose least is above its most");
    if (max > limits_.edges) return refuse("a repeat of too many");
    return Pattern::repeated(std::move(part), min, max);
}

Result<Pattern> LarkReader::reference(bool terminal) {
    const std::string title = name();
    if (rest_.starts_with("{")) return cannot("templates are not supported");
    if (terminal && !is_terminal(title)) return refuse("a terminal is not made of rules");
    Pattern out = call(known(title).rule);
    if (terminal || !is_terminal(title)) return out;
    Pattern lexeme;
    lexeme.parts = {call(kLarkIgnored), std::move(out)};
    return lexeme;
}

Result<Pattern> LarkReader::text(bool terminal) {
    auto first = quoted();
    if (!first) return std::move(first).error();
    Pattern out;
    if (!terminal) out.parts.push_back(call(kLarkIgnored));
    const std::string_view before = rest_;
    space(false);
    if (skip("..")) {
        space(false);
        if (rest_.empty() || rest_[0] != '"') return refuse("expected a string behind ..");
        auto last = quoted();
        if (!last) return std::move(last).error();
        if (first->size() != 1 || last->size() != 1 || (*first)[0] > (*last)[0])
            return refuse("a range goes from one character to a later one");
        out.parts.push_back(Pattern::of({{(*first)[0], (*last)[0]}}));
        return out;
    }
    rest_ = before;
    if (first->empty() && terminal) return refuse("an empty string is no terminal");
    const bool any_case = skip("i");
    for (const char32_t c : *first) out.parts.push_back(character(c, any_case));
    if (first->empty()) out.parts.clear();
    return out;
}

Result<std::u32string> LarkReader::quoted() {
    std::u32string out;
    skip("\"");
    while (!skip("\"")) {
        if (rest_.empty() || rest_[0] == '\n') return refuse("a string without its end");
        if (skip("\\")) {
            auto c = escape();
            if (!c) return std::move(c).error();
            out += static_cast<char32_t>(*c);
            continue;
        }
        const int64_t c = take_character(rest_);
        if (c < 0) return refuse("not valid UTF-8");
        out += static_cast<char32_t>(c);
    }
    return out;
}

Result<uint32_t> LarkReader::escape() {
    const char c = rest_.empty() ? ' ' : rest_[0];
    if (!rest_.empty()) rest_.remove_prefix(1);
    constexpr std::string_view kPlain = "\"\\/'", kNamed = "ntrf", kMeaning = "\n\t\r\f";
    if (kPlain.find(c) != kPlain.npos) return static_cast<uint32_t>(c);
    if (const size_t at = kNamed.find(c); at != kNamed.npos) return static_cast<uint32_t>(kMeaning[at]);
    const size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
    if (digits == 0) return refuse("an escape that means nothing");
    uint32_t value = 0;
    for (size_t i = 0; i < digits; i++) {
        const int digit = i < rest_.size() ? hex_digit(rest_[i]) : -1;
        if (digit < 0 || value > kCodePointMax)
            return refuse("an escape with too few hexadecimal digits, or beyond Unicode");
        value = value * 16 + static_cast<uint32_t>(digit);
    }
    if (value > kCodePointMax || (value >= 0xD800 && value <= 0xDFFF))
        return refuse("an escape for what is no character");
    rest_.remove_prefix(digits);
    return value;
}

/// /pattern/flags.
Result<Pattern> LarkReader::pattern() {
    size_t end = 1;
    for (; end < rest_.size() && rest_[end] != '\n' && rest_[end] != '/'; end++)
        if (rest_[end] == '\\') end++;
    if (end >= rest_.size() || rest_[end] != '/') return refuse("a pattern without its end");
    const std::string_view source = rest_.substr(1, end - 1);
    const std::string at = here();
    RegexFlags flags{.python = true};
    rest_.remove_prefix(end + 1);
    while (!rest_.empty() && rest_[0] >= 'a' && rest_[0] <= 'z') {
        if (rest_[0] == 'i')
            flags.any_case = true;
        else if (rest_[0] == 's')
            flags.dot_all = true;
        else if (rest_[0] != 'u')
            return cannot("of a pattern's flags, i, s and u are read");
        rest_.remove_prefix(1);
    }
    auto read = read_regex(source, limits_, flags);
    if (!read) return Error{read.error().code, fmt::format("{}: {}", read.error().where, read.error().message), at};
    return read;
}

Result<std::string_view> LarkReader::braces() {
    size_t end = 0, depth = 0;
    bool in_string = false;
    for (; end < rest_.size(); end++) {
        const char c = rest_[end];
        if (in_string && c == '\\') {
            end++;
        } else if (c == '"') {
            in_string = !in_string;
        } else if (!in_string && (c == '{' || c == '[')) {
            if (++depth > size_t{limits_.depth} * 16) return refuse("brackets are nested too deep");
        } else if (!in_string && (c == '}' || c == ']')) {
            if (depth == 0) break;
            if (--depth == 0) {
                const std::string_view out = rest_.substr(0, end + 1);
                rest_.remove_prefix(end + 1);
                return out;
            }
        } else if (depth == 0) {
            break;
        }
    }
    return refuse("expected { and its }");
}

Result<Pattern> LarkReader::schema() {
    const std::string at = here();
    skip("%json");
    space(true);
    auto source = braces();
    if (!source) return std::move(source).error();
    const auto parsed = nlohmann::ordered_json::parse(*source, nullptr, false);
    if (parsed.is_discarded()) return bad_input("the schema is not valid JSON", at);
    auto rule = add_schema(rules_, parsed);
    if (!rule) return Error{rule.error().code, fmt::format("{}: {}", rule.error().where, rule.error().message), at};
    Pattern out;
    out.parts = {call(kLarkIgnored), call(*rule)};
    return out;
}

Status LarkReader::number(uint32_t& out) {
    size_t digits = 0;
    uint64_t value = 0;
    for (; digits < rest_.size() && rest_[digits] >= '0' && rest_[digits] <= '9'; digits++)
        value = std::min<uint64_t>(value * 10 + static_cast<uint64_t>(rest_[digits] - '0'), UINT32_MAX - 1);
    if (digits == 0) return refuse("expected a number");
    rest_.remove_prefix(digits);
    out = static_cast<uint32_t>(value);
    return Ok{};
}

}  // namespace cadans::grammar
