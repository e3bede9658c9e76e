// How JSON is written: the rules that every schema shares, and the strings that may stand in an answer.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "grammar/grammar.h"

namespace cadans::grammar {

/// Characters that a JSON string cannot hold as they are.
inline constexpr std::array<uint8_t, 34> kJsonEscaped = [] {
    std::array<uint8_t, 34> out{};
    for (uint8_t c = 0; c < 32; c++) out[c] = c;
    out[32] = '"';
    out[33] = '\\';
    return out;
}();

std::string json_escape(uint8_t c);              ///< the shortest escape: \n, or \u001f
std::string json_string(std::string_view text);  ///< with its quotes, escaped no more than JSON demands
/// How SchemaOptions::quote spells a name; empty: it cannot.
std::string bare_name(std::string_view name);

/// All that may follow a \ in a JSON string, surrogate pairs complete, lone surrogates never.
void add_json_escape(Nfa& nfa, Nfa::State from, Nfa::State to);

/// Between the parts of a JSON text: nothing, one space, or one line end and then at most kIndentMax spaces or tabs.
/// Before a comma and a colon nothing, after a colon at most one space. So no answer can be white space without end.
inline constexpr uint32_t kIndentMax = 64;
/// Numbers without bounds: at most so many digits before and behind the point, two in an exponent. They stay finite.
inline constexpr uint32_t kDigitsMax = 18;

/// The shared rules, each made when it is first asked for. Thread rule: one thread; borrows the rules
class JsonRules {
  public:
    /// quote  as SchemaOptions::quote
    explicit JsonRules(Rules& rules, std::string quote = {}) : rules_(rules), quote_(std::move(quote)) {}

    RuleId space();    ///< between parts; may be empty
    RuleId string();   ///< any string
    RuleId name();     ///< any name of a member
    RuleId integer();  ///< any integer, without point and exponent
    RuleId number();
    RuleId value();   ///< any value
    RuleId object();  ///< any object
    RuleId array();

  private:
    enum { kSpace, kString, kName, kInteger, kNumber, kValue, kObject, kArray, kCount };
    RuleId make(int which, std::string name, Nfa (JsonRules::*body)());
    Nfa space_body();
    Nfa string_body();
    Nfa name_body();
    Nfa integer_body();
    Nfa number_body();
    Nfa value_body();
    Nfa object_body();
    Nfa array_body();

    Rules& rules_;
    std::string quote_;
    std::array<RuleId, kCount> made_{};
    std::array<bool, kCount> known_{};
};

/// Any JSON object, alone: what `response_format: json_object` asks for.
Result<Grammar> json_mode(const Limits& limits = {});

}  // namespace cadans::grammar
