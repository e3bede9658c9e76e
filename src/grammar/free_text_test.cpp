#include "grammar/free_text.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "grammar/matcher.h"

namespace cadans::grammar {
namespace {

/// Text, the mark, and "!".
Result<Grammar> marked(std::string_view mark, const Forbidden& forbidden = {}, bool free = false) {
    Rules rules;
    Nfa text = rules.body();
    text.accept(add_text_until(text, 0, mark, forbidden));
    const RuleId rule = rules.add("text", std::move(text));
    if (free) rules.set_free(rule);
    Nfa body = rules.body();
    body.accept(body.literal(body.call(0, rule), "!"));
    return rules.compile(rules.add("root", std::move(body)));
}

bool takes(const Grammar& grammar, std::string_view text) {
    Stacks stacks(grammar);
    Matcher matcher(stacks);
    return matcher.accept(text) && matcher.may_end();
}

TEST(free_text, goes_up_to_the_first_mark) {
    const Result<Grammar> grammar = marked("</think>");
    ASSERT_TRUE(grammar.has_value());
    for (const char* text :
         {"</think>!", "a</think>!", "<</think>!", "</</think>!", "</think</think>!", "é🙂\n\t日</think>!"})
        EXPECT_TRUE(takes(*grammar, text)) << text;
    for (const char* text : {"", "!", "</think>", "</think>!!", "</think>a</think>!", "a</think>a", "\xFF</think>!",
                             "\xC3</think>!", "\xED\xA0\x80</think>!", "\xC0\x80</think>!"})
        EXPECT_FALSE(takes(*grammar, text)) << text;
}

// Every text over two letters, and a mark whose beginning comes again inside it.
TEST(free_text, finds_marks_that_overlap_themselves) {
    for (const std::string_view mark : {"aab", "aabaa", "abab", "aaa", "b"}) {
        const Result<Grammar> grammar = marked(mark);
        ASSERT_TRUE(grammar.has_value());
        for (uint32_t bits = 0; bits < 1U << 11; bits++) {
            std::string text;
            for (uint32_t rest = bits + 1; rest > 1; rest >>= 1) text += rest & 1 ? 'a' : 'b';
            const size_t found = text.find(mark);
            const bool first_at_end = found != std::string::npos && found + mark.size() == text.size();
            EXPECT_EQ(takes(*grammar, text + "!"), first_at_end) << mark << " in " << text;
        }
    }
}

TEST(free_text, may_be_kept_from_beginning_in_some_way) {
    const Result<Grammar> grammar = marked("<|go|>", {.first = {"{", "<think>"}});
    ASSERT_TRUE(grammar.has_value());
    for (const char* text : {"a{<|go|>!", "<|go|>!", " \n<|go|>!", "é{<|go|>!", "\n a{<|go|>!", "<{<|go|>!", "<<|go|>!",
                             "<think<|go|>!", "<thin{<|go|>!", "a<think><|go|>!", " <|g{<|go|>!", "\v{<|go|>!"})
        EXPECT_TRUE(takes(*grammar, text)) << text;
    for (const char* text : {"{<|go|>!", "\n{<|go|>!", " \t\r\n{<|go|>!", "<think><|go|>!", " <think>a<|go|>!"})
        EXPECT_FALSE(takes(*grammar, text)) << text;
}

TEST(free_text, may_be_kept_from_holding_other_marks) {
    const Result<Grammar> grammar = marked("<|end|>", {.first = {"{"}, .anywhere = {"<|start|>", "<|return|>"}});
    ASSERT_TRUE(grammar.has_value());
    for (const char* text : {"<|end|>!", "a<|star<|end|>!", "<|st<|s|<|end|>!", "<|<|e<|end|>!", "a{<|return|<|end|>!"})
        EXPECT_TRUE(takes(*grammar, text)) << text;
    for (const char* text : {"<|start|><|end|>!", "a<|st<|start|>b<|end|>!", "<|e<|return|><|end|>!", " {<|end|>!",
                             "<|end|><|end|>!", "<|start|>!"})
        EXPECT_FALSE(takes(*grammar, text)) << text;
}

TEST(free_text, a_free_rule_lets_an_answer_end_inside_it_and_only_there) {
    const Result<Grammar> grammar = marked("<x>", {}, true);
    ASSERT_TRUE(grammar.has_value());
    for (const char* text : {"a", "some words <", "<x", "<x>!"}) EXPECT_TRUE(takes(*grammar, text)) << text;
    for (const char* text : {"<x>", "a <x>", "\xC3", "a\xF0\x9F"}) EXPECT_FALSE(takes(*grammar, text)) << text;
    Stacks stacks(*grammar);
    Matcher matcher(stacks);
    std::array<char, 10> out;
    EXPECT_EQ(matcher.forced(out), "") << "a place where the answer may end forces nothing";
}

}  // namespace
}  // namespace cadans::grammar
