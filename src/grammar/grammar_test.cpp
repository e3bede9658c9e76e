// What grammars are refused, and what odd sources cost.
#include "grammar/grammar.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>

#include "grammar/code_points.h"
#include "grammar/gbnf.h"
#include "grammar/json_text.h"
#include "grammar/lark.h"
#include "grammar/matcher.h"
#include "grammar/regex.h"
#include "grammar/schema.h"

namespace cadans::grammar {
namespace {

bool takes(const Grammar& grammar, std::string_view text) {
    Stacks stacks(grammar);
    Matcher matcher(stacks);
    return matcher.accept(text) && matcher.may_end();
}

void expect_texts(const Result<Grammar>& grammar, std::initializer_list<const char*> good,
                  std::initializer_list<const char*> bad) {
    ASSERT_TRUE(grammar.has_value()) << grammar.error().where << ": " << grammar.error().message;
    for (const char* text : good) EXPECT_TRUE(takes(*grammar, text)) << text;
    for (const char* text : bad) EXPECT_FALSE(takes(*grammar, text)) << text;
}

TEST(regex, takes_what_it_matches_as_a_whole) {
    expect_texts(regex_grammar("a+b?"), {"a", "aab"}, {"", "b", "aabb", "xa"});
    expect_texts(regex_grammar("^(yes|no)$"), {"yes", "no"}, {"ye", "yes!"});
    expect_texts(regex_grammar("(^a|b)c$|d^"), {"ac", "bc"}, {"dd", "d", ""});
    expect_texts(regex_grammar("[^a-c\\d]{2}"), {"xy", "é日"}, {"ax", "x1", "x"});
    expect_texts(regex_grammar("\\u{1F642}\\x41\\cA\\.\\-"), {"🙂A\x01.-"}, {"🙂A.-"});
    expect_texts(regex_grammar("a{0}b{2,}c{1,2}?"), {"bbc", "bbbcc"}, {"bc", "abbc", "bbccc"});
    expect_texts(regex_grammar("."), {"a", "é"}, {"\n", "\xC3", "\xFF", "ab"});
    expect_texts(regex_grammar("(?:a|(?<n>b))*"), {"", "abba"}, {"c"});
    expect_texts(regex_grammar("\\w\\s\\D"), {"a é"}, {"é a", "a 1"});
}

TEST(regex, refuses_what_it_cannot_keep_and_says_where) {
    for (const auto& [pattern, where] : std::initializer_list<std::pair<const char*, int>>{{"^+a$", 1},
                                                                                           {"a**", 2},
                                                                                           {"(a", 2},
                                                                                           {"a)", 1},
                                                                                           {"[a", 2},
                                                                                           {"(?=a)", 2},
                                                                                           {"(?<!a)", 3},
                                                                                           {"\\1", 1},
                                                                                           {"a{2,1}", 6},
                                                                                           {"\\", 1},
                                                                                           {"[b-a]", 4},
                                                                                           {"\\q", 2},
                                                                                           {"{2}x", 0},
                                                                                           {"x{200000}", 9},
                                                                                           {"\\p{L}", 2},
                                                                                           {"\\bx", 1},
                                                                                           {"\xFF", 1},
                                                                                           {"\\ud800", 6}}) {
        const auto grammar = regex_grammar(pattern);
        ASSERT_FALSE(grammar.has_value()) << pattern;
        EXPECT_EQ(grammar.error().where, fmt::format("at byte {} of the pattern", where)) << pattern;
    }
    EXPECT_FALSE(regex_grammar("[]").has_value());
    EXPECT_FALSE(regex_grammar("((a{1000}){1000}){1000}").has_value());
}

TEST(gbnf, reads_the_language_of_llama_cpp) {
    expect_texts(gbnf_grammar("# numbers\nroot ::= (expr \"=\" ws num \"\\n\")+\nexpr ::= num ([-+*/] num)* # "
                              "more\nnum ::= [0-9]+ | \"(\" ws expr \")\"\nws ::= [ \\t]*"),
                 {"1+2=3\n", "(1*2)-3=  5\n4=4\n"}, {"1+=3\n", "1=1", ""});
    expect_texts(gbnf_grammar("root ::=\n  \"a\" (\n  \"b\"\n | \"c\" )? |\n \"d\"{2,3} .\n"),
                 {"a", "ab", "ac", "ddx", "ddd", "dddé"}, {"d", "dddxx", "abc"});
    expect_texts(gbnf_grammar("root ::= \"\\x41\\u00e9\\\"\" [^\\]a-]\r\nx ::= root"), {"Aé\"b"}, {"Aé\"]", "Aé\"-"});
    expect_texts(gbnf_grammar("root ::= a\na ::= b? c\nb ::= \"b\" | \"\"\nc ::= \"[\" a \"]\" | \"x\""),
                 {"x", "bx", "[b[x]]"}, {"b", "[x"});
}

TEST(gbnf, refuses_and_names_the_line) {
    for (const auto& [source, where] :
         std::initializer_list<std::pair<const char*, const char*>>{{"root ::= x", "line 1"},
                                                                    {"a ::= \"b\"", "line 1"},
                                                                    {"root ::= \"a\"\nroot ::= \"b\"", "line 2"},
                                                                    {"root ::= \"a", "line 1"},
                                                                    {"root ::= [a", "line 1"},
                                                                    {"root ::= (\"a\"", "line 1"},
                                                                    {"root ::= \"a\" )", "line 1"},
                                                                    {"root = \"a\"", "line 1"},
                                                                    {"root ::= a\na ::= a \"b\" | \"c\"", "line 2"},
                                                                    {"root ::= <[1]>", "line 1"},
                                                                    {"root ::= \"a\"{3,2}", "line 1"},
                                                                    {"root ::= *", "line 1"},
                                                                    {"root ::= \"\\q\"", "line 1"},
                                                                    {"root ::= root", "line 1"}}) {
        const auto grammar = gbnf_grammar(source);
        ASSERT_FALSE(grammar.has_value()) << source;
        EXPECT_EQ(grammar.error().where, where) << source << " " << grammar.error().message;
    }
}

TEST(lark, reads_rules_and_terminals) {
    expect_texts(lark_grammar("start: \"a\" b? | c // two ways\n  | \"x\"i \"..\" \nb: \"b\"+\n!c: D ~ 2..3 -> "
                              "digits\nD.2: \"0\"..\"9\"\n"),
                 {"a", "abb", "12", "123", "X..", "x.."}, {"b", "1", "1234", "ab1"});
    expect_texts(
        lark_grammar("start: \"[\" [item (\",\" item)*] \"]\"\nitem: /[a-c]{2}/ | W\nW: \"w\" | \"v\" D\nD: /\\d/\n"),
        {"[]", "[ab]", "[ab,w,v1]"}, {"[ab,]", "[a]", "[v]"});
    expect_texts(lark_grammar("%import common.SIGNED_NUMBER -> N\n%import common (WS, ESCAPED_STRING)\n%ignore WS\n"
                              "start: value\n?value: N | ESCAPED_STRING | \"[\" [value (\",\" value)*] \"]\"\n"),
                 {"1", "[1, -2.5e3 ,\"a\\\"b\"]", " [ \n1]"}, {"1 ", "[1,]", "\"a", "[1 2]"});
    expect_texts(
        lark_grammar(
            "start: sum\nsum: sum \"+\" term | sum \"-\" term | term\nterm: term \"*\" D | D\nD: \"1\"|\"2\"\n"),
        {"1", "1+2*1-2", "2*2*2"}, {"+1", "1+", "1++2"});
    expect_texts(lark_grammar("%llguidance {}\nstart: \"let\" X \"=\" %json {\"type\": \"integer\", \"minimum\": "
                              "3}\nX[capture]: /[a-z]/ \"_\"~2\n"),
                 {"letx__=3", "lety__=12"}, {"letx__=2", "letx_=3"});
    expect_texts(lark_grammar("start: /a.c/s \"\\x41\\u00e9\\\"\\n\" | /a\\/b/i"), {"a\ncA\u00e9\"\n", "A/b"},
                 {"a/c", "acA"});
}

TEST(lark, patterns_are_pythons_on_the_safe_side) {
    expect_texts(lark_grammar("start: /[]x]+\\w\\d(?P<n>\\-|\\\")/"), {"]xa1-", "xb2\""}, {"]\u00e91-", "x]1a"});
    expect_texts(lark_grammar("start: /[^\\s,]+/"), {"a\u00e9"}, {"a b", "\u00a0", "\u0085", "\x1c"});
    expect_texts(lark_grammar("start: /\\S\\W\\D/"), {"a-b", "\u00e9 x"}, {"\u0085-b", "a\u00e9b", "a-\u0663", "a-1"});
    expect_texts(lark_grammar("start: /k[^s]x/i"), {"KaX", "kbx"}, {"kSx", "k\u017fx", "\u212aax"});
    expect_texts(lark_grammar("start: /[^\\S\\n]/"), {" ", "\t"}, {"\n", "a", "\u0085"});
}

TEST(lark, refuses_and_names_the_line) {
    for (const auto& [source, where] : std::initializer_list<std::pair<const char*, const char*>>{
             {"start: x", "line 1"},
             {"a: \"b\"", "line 1"},
             {"start: \"a\"\nstart: \"b\"", "line 2"},
             {"start: \"a", "line 1"},
             {"start: /a", "line 1"},
             {"start: (\"a\"", "line 1"},
             {"start: \"a\" )", "line 1"},
             {"start \"a\"", "line 1"},
             {"start: a\na: b\nb: a \"x\" | \"y\"", "line 2"},
             {"start: \"a\"\nB: start", "line 2"},
             {"start: <|end|>", "line 1"},
             {"\nstart: /a(?=b)/", "line 2"},
             {"start: /^a/", "line 1"},
             {"start: /[^\\w]/", "line 1"},
             {"start: /a/x", "line 1"},
             {"start: \"a\" ~ 3..2", "line 1"},
             {"%import python.NAME\nstart: NAME", "line 1"},
             {"%import common.NAMES\nstart: NAMES", "line 1"},
             {"%declare X\nstart: X", "line 1"},
             {"start: list{\"a\"}\nlist{x}: x", "line 1"},
             {"start[temperature=1]: \"a\"", "line 1"},
             {"start: %json {\"type\": \"thing\"}", "line 1"},
             {"start: %json {\"a\": ", "line 1"},
             {"start: \"b\"..\"a\"", "line 1"},
             {"start: *", "line 1"},
             {"start: \"\\q\"", "line 1"},
             {"start: \"ls\" X\nX: \"x\"\n%ignore /#[^\\n]*/", "line 3"},
             {"start: \"a\" NL\nNL: \"\\n\"\n%ignore W\nW: /[ \\n]/+", "line 3"},
             {"start: start", "line 1"}}) {
        const auto grammar = lark_grammar(source);
        ASSERT_FALSE(grammar.has_value()) << source;
        EXPECT_EQ(grammar.error().where, where) << source << " " << grammar.error().message;
    }
}

TEST(grammar, refuses_giants_quickly) {
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_FALSE(regex_grammar(std::string(60'000, '(') + std::string(60'000, ')')).has_value());
    EXPECT_FALSE(regex_grammar("(a|b)*a(a|b){90000}").has_value());
    EXPECT_FALSE(gbnf_grammar("root ::= " + std::string(60'000, '(') + "\"a\"" + std::string(60'000, ')')).has_value());
    EXPECT_FALSE(gbnf_grammar("root ::= ((((\"a\"{1000}){1000}){1000}){1000})").has_value());
    EXPECT_FALSE(lark_grammar("start: " + std::string(60'000, '(') + "\"a\"" + std::string(60'000, ')')).has_value());
    EXPECT_FALSE(lark_grammar("start: (((\"a\" ~ 1000) ~ 1000) ~ 1000) ~ 1000").has_value());
    EXPECT_FALSE(lark_grammar("start: %json " + std::string(60'000, '[')).has_value());
    std::string nested = "1";
    for (int i = 0; i < 40'000; i++) nested = std::string("[") + nested + "]";
    EXPECT_FALSE(schema_text_grammar("{\"const\": " + nested + "}").has_value());
    nlohmann::ordered_json wide;
    for (int i = 0; i < 10'000; i++) wide["properties"][fmt::format("p{}", i)] = {{"type", "string"}};
    EXPECT_FALSE(schema_grammar(wide).has_value());
    nlohmann::ordered_json choices = {{"type", "integer"}};
    for (int i = 0; i < 40; i++) choices["allOf"].push_back({{"anyOf", {{{"minimum", i}}, {{"maximum", -i}}}}});
    EXPECT_FALSE(schema_grammar(choices).has_value());
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
}

TEST(grammar, comparing_with_what_is_ignored_needs_neither_stack_nor_time) {
    const auto begin = std::chrono::steady_clock::now();
    std::string deep = "(A)?";
    for (int i = 0; i < 60; i++) deep = "(" + deep + ")?";
    EXPECT_FALSE(lark_grammar("start: A\nA: " + deep + "\n%ignore \" \"").has_value());

    std::string characters, literals;
    for (uint32_t c = 0x800; c < 0x800 + 40'000; c += 2) {
        characters += utf8(c);
        if (c < 0x800 + 20'000) literals += (literals.empty() ? "\"" : "|\"") + utf8(c) + "\"";
    }
    std::string many;
    for (int i = 0; i < 30'000; i++) many += " A";
    (void)lark_grammar("start:" + many + "\nA: /[" + characters + "]/\n%ignore \" \"");
    (void)lark_grammar("start: " + literals + "\n%ignore \" \"");
    std::string ignored;
    for (int i = 0; i < 5'000; i++) ignored += "\n%ignore \"ab\"";
    (void)lark_grammar("start: A\nA: /[" + characters + "]/" + ignored);
    (void)regex_grammar("[" + characters + "]");
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
}

TEST(grammar, any_number_of_nothing_is_nothing) {
    const auto begin = std::chrono::steady_clock::now();
    (void)regex_grammar("((){800000}){800000}a");
    (void)gbnf_grammar("root ::= (\"\"{800000}){800000} \"a\"");
    (void)lark_grammar("start: (\"\"~800000)~800000 \"a\"");
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
    expect_texts(gbnf_grammar("root ::= \"\"{3} (\"\"{2,5} | \"b\"){2} \"a\""), {"a", "ba", "bba"}, {"", "bbba"});
}

TEST(grammar, sources_that_share_rules_share_their_limits) {
    const nlohmann::ordered_json text = {{"type", "string"}, {"maxLength", 4'096}};
    Rules rules;
    int written = 0;
    while (written < 500 && add_schema(rules, text).has_value()) written++;
    EXPECT_GE(written, 1);
    EXPECT_LT(written, 20) << "refused when it is written, not when hundreds are compiled";
    EXPECT_FALSE(add_schema(rules, text).has_value());

    const nlohmann::ordered_json either = {{"oneOf", {{{"const", 1}}, {{"const", 2}}, {{"const", 3}}}}};
    Rules compared(Limits{.work = 200});
    int done = 0;
    Result<RuleId> last = add_schema(compared, either);
    for (; done < 500 && last.has_value(); done++) last = add_schema(compared, either);
    ASSERT_FALSE(last.has_value());
    EXPECT_GT(done, 2);
    EXPECT_NE(last.error().message.find("too long to compare"), std::string::npos) << last.error().message;
}

TEST(grammar, keeps_large_bounds_by_writing_less) {
    const auto grammar = schema_grammar(nlohmann::ordered_json{{"type", "string"}, {"maxLength", 1'000'000}});
    ASSERT_TRUE(grammar.has_value());
    EXPECT_TRUE(takes(*grammar, "\"" + std::string(4'096, 'a') + "\""));
    EXPECT_FALSE(takes(*grammar, "\"" + std::string(4'097, 'a') + "\""));
}

TEST(grammar, white_space_has_an_end) {
    const auto grammar = json_mode();
    expect_texts(grammar, {"{}", "{ }", "{\n}", "{\"a\":1}", "{\"a\": 1, \"b\":[\n    1,\n\t2]}"},
                 {"{  }", "{\n\n}", " {}", "{} ", "[]", "{\"a\" :1}", "{\"a\":  1}", "{\"a\":\n1}", "{\"\\ud800\": 1}",
                  "{\"a\":01}", "{\"a\":1,}"});
}

}  // namespace
}  // namespace cadans::grammar
