#include "grammar/json_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "grammar/text_automaton.h"

namespace cadans::grammar {
namespace {

void hex_digit(Nfa& nfa, Nfa::State from, Nfa::State to) {
    nfa.bytes(from, '0', '9', to);
    nfa.bytes(from, 'A', 'F', to);
    nfa.bytes(from, 'a', 'f', to);
}

void hex_digits(Nfa& nfa, Nfa::State from, int count, Nfa::State to) {
    for (; count > 1; count--) {
        const Nfa::State next = nfa.add();
        hex_digit(nfa, from, next);
        from = next;
    }
    hex_digit(nfa, from, to);
}

Nfa::State digits(Nfa& nfa, Nfa::State from, uint32_t min, uint32_t max) {
    return nfa.repeat(from, min, max, [&](Nfa::State at) { return nfa.bytes(at, '0', '9'); });
}

Nfa::State add_integer(Nfa& nfa, Nfa::State from) {
    const Nfa::State unsigned_part = nfa.add(), end = nfa.add();
    nfa.join(from, unsigned_part);
    nfa.bytes(from, '-', '-', unsigned_part);
    nfa.bytes(unsigned_part, '0', '0', end);
    nfa.join(digits(nfa, nfa.bytes(unsigned_part, '1', '9'), 0, kDigitsMax - 1), end);
    return end;
}

}  // namespace

std::string json_escape(uint8_t c) {
    switch (c) {
        case '"':
            return "\\\"";
        case '\\':
            return "\\\\";
        case '\b':
            return "\\b";
        case '\f':
            return "\\f";
        case '\n':
            return "\\n";
        case '\r':
            return "\\r";
        case '\t':
            return "\\t";
        default:
            return fmt::format("\\u{:04x}", c);
    }
}

std::string json_string(std::string_view text) {
    std::string out = "\"";
    for (const char c : text) {
        const auto byte = static_cast<uint8_t>(c);
        if (byte < 0x20 || byte == '"' || byte == '\\')
            out += json_escape(byte);
        else
            out += c;
    }
    return out + "\"";
}

std::string bare_name(std::string_view name) {
    const bool good = !name.empty() && std::ranges::all_of(name, [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
               c == '-' || c == '$' || static_cast<uint8_t>(c) >= 0x80;
    });
    return good ? std::string(name) : std::string();
}

void add_json_escape(Nfa& nfa, Nfa::State from, Nfa::State to) {
    for (const char c : {'"', '\\', '/', 'b', 'f', 'n', 'r', 't'})
        nfa.bytes(from, static_cast<uint8_t>(c), static_cast<uint8_t>(c), to);
    const Nfa::State u = nfa.bytes(from, 'u', 'u');
    const Nfa::State three = nfa.add();  // three more digits: every character whose first one is not D
    nfa.bytes(u, '0', '9', three);
    nfa.bytes(u, 'A', 'C', three);
    nfa.bytes(u, 'a', 'c', three);
    nfa.bytes(u, 'E', 'F', three);
    nfa.bytes(u, 'e', 'f', three);
    hex_digits(nfa, three, 3, to);
    const Nfa::State d = nfa.add(), low_pair = nfa.add(), two = nfa.add(), high = nfa.add();
    nfa.bytes(u, 'D', 'D', d);
    nfa.bytes(u, 'd', 'd', d);
    nfa.bytes(d, '0', '7', two);
    hex_digits(nfa, two, 2, to);
    nfa.bytes(d, '8', '9', low_pair);
    nfa.bytes(d, 'A', 'B', low_pair);
    nfa.bytes(d, 'a', 'b', low_pair);
    hex_digits(nfa, low_pair, 2, high);
    const Nfa::State low_u = nfa.literal(high, "\\u"), low_d = nfa.add(), low_two = nfa.add();
    nfa.bytes(low_u, 'D', 'D', low_d);
    nfa.bytes(low_u, 'd', 'd', low_d);
    nfa.bytes(low_d, 'C', 'F', low_two);
    nfa.bytes(low_d, 'c', 'f', low_two);
    hex_digits(nfa, low_two, 2, to);
}

RuleId JsonRules::make(int which, std::string name, Nfa (JsonRules::*body)()) {
    const auto at = static_cast<size_t>(which);
    if (!known_[at]) {
        known_[at] = true;
        made_[at] = rules_.add(std::move(name));
        rules_.set(made_[at], (this->*body)());
    }
    return made_[at];
}

RuleId JsonRules::space() { return make(kSpace, "white space", &JsonRules::space_body); }
RuleId JsonRules::name() { return quote_.empty() ? string() : make(kName, "any name", &JsonRules::name_body); }
RuleId JsonRules::string() { return make(kString, "any string", &JsonRules::string_body); }
RuleId JsonRules::integer() { return make(kInteger, "any integer", &JsonRules::integer_body); }
RuleId JsonRules::number() { return make(kNumber, "any number", &JsonRules::number_body); }
RuleId JsonRules::value() { return make(kValue, "any value", &JsonRules::value_body); }
RuleId JsonRules::object() { return make(kObject, "any object", &JsonRules::object_body); }
RuleId JsonRules::array() { return make(kArray, "any array", &JsonRules::array_body); }

Nfa JsonRules::space_body() {
    Nfa nfa = rules_.body();
    const Nfa::State end = nfa.add();
    nfa.join(0, end);
    nfa.bytes(0, ' ', ' ', end);
    const Nfa::State line = nfa.bytes(0, '\n', '\n');
    nfa.join(nfa.repeat(line, 0, kIndentMax,
                        [&](Nfa::State at) {
                            const Nfa::State next = nfa.add();
                            nfa.bytes(at, ' ', ' ', next);
                            nfa.bytes(at, '\t', '\t', next);
                            return next;
                        }),
             end);
    nfa.accept(end);
    return nfa;
}

Nfa JsonRules::string_body() {
    Nfa nfa = rules_.body();
    if (quote_.empty())
        nfa.accept(TextAutomaton::anything().add_json_string(nfa, 0));
    else
        nfa.accept(TextAutomaton::without(quote_).add_quoted(nfa, 0, quote_));
    return nfa;
}

Nfa JsonRules::name_body() {
    Nfa nfa = rules_.body();
    nfa.accept(TextAutomaton::bare_names().add_raw(nfa, 0));
    return nfa;
}

Nfa JsonRules::integer_body() {
    Nfa nfa = rules_.body();
    nfa.accept(add_integer(nfa, 0));
    return nfa;
}

Nfa JsonRules::number_body() {
    Nfa nfa = rules_.body();
    const Nfa::State whole = add_integer(nfa, 0), mantissa = nfa.add(), sign = nfa.add(), end = nfa.add();
    nfa.join(whole, mantissa);
    nfa.join(digits(nfa, nfa.literal(whole, "."), 1, kDigitsMax), mantissa);
    nfa.join(mantissa, end);
    const Nfa::State e = nfa.add();
    nfa.bytes(mantissa, 'e', 'e', e);
    nfa.bytes(mantissa, 'E', 'E', e);
    nfa.join(e, sign);
    nfa.bytes(e, '-', '-', sign);
    nfa.bytes(e, '+', '+', sign);
    nfa.join(digits(nfa, sign, 1, 2), end);
    nfa.accept(end);
    return nfa;
}

Nfa JsonRules::value_body() {
    Nfa nfa = rules_.body();
    const Nfa::State end = nfa.add();
    for (const char* word : {"null", "true", "false"}) nfa.join(nfa.literal(0, word), end);
    for (const RuleId rule : {string(), number(), object(), array()}) nfa.call(0, rule, end);
    nfa.accept(end);
    return nfa;
}

Nfa JsonRules::object_body() {
    Nfa nfa = rules_.body();
    const Nfa::State first = nfa.call(nfa.literal(0, "{"), space()), key = nfa.add(), end = nfa.add();
    nfa.join(first, key);
    const Nfa::State colon = nfa.literal(nfa.call(key, name()), ":"), value_at = nfa.add();
    nfa.join(colon, value_at);
    nfa.bytes(colon, ' ', ' ', value_at);
    const Nfa::State behind = nfa.call(value_at, value());
    nfa.call(nfa.literal(behind, ","), space(), key);
    nfa.bytes(nfa.call(behind, space()), '}', '}', end);
    nfa.bytes(first, '}', '}', end);
    nfa.accept(end);
    return nfa;
}

Nfa JsonRules::array_body() {
    Nfa nfa = rules_.body();
    const Nfa::State first = nfa.call(nfa.literal(0, "["), space()), item = nfa.add(), end = nfa.add();
    nfa.join(first, item);
    const Nfa::State behind = nfa.call(item, value());
    nfa.call(nfa.literal(behind, ","), space(), item);
    nfa.bytes(nfa.call(behind, space()), ']', ']', end);
    nfa.bytes(first, ']', ']', end);
    nfa.accept(end);
    return nfa;
}

Result<Grammar> json_mode(const Limits& limits) {
    Rules rules(limits);
    JsonRules json(rules);
    return rules.compile(json.object());
}

}  // namespace cadans::grammar
