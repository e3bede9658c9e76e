#include <gtest/gtest.h>

#include "base/random.h"
#include "text/reasoning.h"
#include "text/stop_strings.h"

namespace cadans::text {
namespace {

/// Cuts `text` at places drawn from `seed`.
std::vector<std::string> cut(const std::string& text, uint64_t seed) {
    std::vector<std::string> pieces;
    for (size_t at = 0; at < text.size();) {
        const size_t n = 1 + mix64(seed + at) % 4;
        pieces.push_back(text.substr(at, n));
        at += n;
    }
    return pieces;
}

struct Stopped {
    std::string text;
    bool stopped = false;
    size_t which = 0;

    bool operator==(const Stopped&) const = default;
};

Stopped run_stops(const std::vector<std::string>& stops, const std::vector<std::string>& pieces) {
    StopStrings matcher(stops);
    Stopped all;
    for (const auto& piece : pieces) {
        const StopOutput out = matcher.push(piece);
        all.text += out.text;
        if (out.stopped) {
            all.stopped = true;
            all.which = out.which;
        }
    }
    all.text += matcher.finish();
    return all;
}

TEST(stop_strings, nothing_of_a_stop_string_gets_through) {
    EXPECT_EQ(run_stops({"DEFGHIJ"}, {"ABCD", "EFG", "HIJKL"}), (Stopped{"ABC", true, 0}));
    EXPECT_EQ(run_stops({"O P Q"}, {"L M N O", " P", " R O P Q"}), (Stopped{"L M N O P R ", true, 0}));
    EXPECT_EQ(run_stops({"a"}, {"abc"}), (Stopped{"", true, 0}));
    EXPECT_EQ(run_stops({"\n\n"}, {"x\n", "y\n"}), (Stopped{"x\ny\n", false, 0}));
    EXPECT_EQ(run_stops({}, {"x"}), (Stopped{"x", false, 0}));
    EXPECT_EQ(run_stops({""}, {"x"}), (Stopped{"x", false, 0}));
    EXPECT_EQ(run_stops({"aab"}, {"aa", "aab"}), (Stopped{"aa", true, 0}));
}

TEST(stop_strings, the_first_that_is_complete_wins_and_of_equals_the_longest) {
    EXPECT_EQ(run_stops({"stop it", "stop"}, {"please stop it"}), (Stopped{"please ", true, 1}));
    EXPECT_EQ(run_stops({"op", "stop"}, {"stop"}), (Stopped{"", true, 1}));
    EXPECT_EQ(run_stops({"abcX", "bc"}, {"ab", "c"}), (Stopped{"a", true, 1}));
}

TEST(stop_strings, holds_back_no_more_than_it_must) {
    StopStrings matcher({"END"});
    EXPECT_EQ(matcher.push("abcE").text, "abc");
    EXPECT_EQ(matcher.held_bytes(), 1u);
    EXPECT_EQ(matcher.push("N").text, "");
    EXPECT_EQ(matcher.push("E").text, "EN");
    EXPECT_EQ(matcher.finish(), "E");
}

TEST(stop_strings, any_cut_gives_the_same_output) {
    for (uint64_t seed = 0; seed < 3000; seed++) {
        std::string text;
        for (uint64_t i = 0; i < 40; i++) text.push_back("ab\n"[mix64(seed * 100 + i) % 3]);
        const std::vector<std::string> stops = {"aab" + std::string(seed % 4, 'a'), "\n\n", "ba\nb", "abab"};
        const Stopped whole = run_stops(stops, {text});
        ASSERT_EQ(whole, run_stops(stops, cut(text, seed))) << seed;
        if (!whole.stopped) continue;
        ASSERT_TRUE(text.starts_with(whole.text + stops[whole.which])) << seed;
        for (const auto& stop : stops) ASSERT_EQ(whole.text.find(stop), std::string::npos) << seed;
    }
}

ReasoningOutput run_reasoning(const ReasoningStyle& style, bool inside, const std::vector<std::string>& pieces) {
    ReasoningSplitter splitter(style, inside);
    ReasoningOutput all;
    const auto add = [&all](const ReasoningOutput& out) {
        all.reasoning += out.reasoning;
        all.content += out.content;
    };
    for (const auto& piece : pieces) add(splitter.push(piece));
    add(splitter.finish());
    return all;
}

const ReasoningStyle kThink{"<think>", "</think>", false};
const ReasoningStyle kChannels{{}, {}, true};

TEST(reasoning, parts_thinking_from_answer) {
    struct Case {
        bool inside;
        std::string text, reasoning, content;
    };
    const std::vector<Case> cases = {
        {false, "<think>\na b\n</think>\n\nHi ", "a b", "Hi "},
        {false, "\n<think>a</think>b", "a", "b"},
        {true, "a\n\nb\n</think>\nc", "a\n\nb", "c"},
        {true, "never closed ", "never closed", ""},
        {false, "  plain", "", "  plain"},
        {false, "I write <think>x</think>", "", "I write <think>x</think>"},
        {false, "<think></think>a</think>", "", "a</think>"},
        {false, "<thin", "", "<thin"},
        {true, "a </thi b</think>c", "a </thi b", "c"},
        {false, "", "", ""},
    };
    for (const auto& c : cases) {
        for (uint64_t seed = 0; seed < 50; seed++) {
            const auto out = run_reasoning(kThink, c.inside, seed == 0 ? std::vector{c.text} : cut(c.text, seed));
            EXPECT_EQ(out.reasoning, c.reasoning) << c.text;
            EXPECT_EQ(out.content, c.content) << c.text;
        }
    }
}

TEST(reasoning, reads_channels) {
    const std::string text =
        "<|channel|>analysis<|message|>think < hard<|end|><|start|>assistant<|channel|>final<|message|>Hi "
        "<b><|return|>";
    for (uint64_t seed = 0; seed < 200; seed++) {
        const auto out = run_reasoning(kChannels, false, seed == 0 ? std::vector{text} : cut(text, seed));
        EXPECT_EQ(out.reasoning, "think < hard");
        EXPECT_EQ(out.content, "Hi <b>");
    }
}

TEST(reasoning, leaves_a_form_as_it_is) {
    const std::string text = "<think>a</think> \n{\"b\": 1} ";
    for (const bool spaced : {false, true}) {
        ReasoningSplitter splitter(kThink, false, spaced ? AfterThinking::spaced_form : AfterThinking::form);
        ReasoningOutput out = splitter.push(text);
        out.content += splitter.finish().content;
        EXPECT_EQ(out.reasoning, "a");
        EXPECT_EQ(out.content, spaced ? " \n{\"b\": 1} " : "{\"b\": 1} ");
    }
    const std::string form = "{\"a\": \"<|end|><|channel|>analysis<|message|>\"}";
    const std::string call = "<|channel|>commentary to=functions.f <|constrain|>json<|message|>" + form;
    const std::string begin = "<|channel|>analysis<|message|>t<|end|><|start|>assistant";
    for (uint64_t seed = 0; seed < 100; seed++)
        for (const bool calls : {false, true}) {
            ReasoningSplitter splitter(kChannels, false, AfterThinking::form, true);
            ReasoningOutput all;
            for (const std::string& piece : cut(begin + (calls ? call : "<|channel|>final<|message|>" + form), seed)) {
                const ReasoningOutput out = splitter.push(piece);
                all.reasoning += out.reasoning;
                all.content += out.content;
            }
            all.content += splitter.finish().content;
            EXPECT_EQ(all.reasoning, "t");
            EXPECT_EQ(all.content, calls ? call : form);
        }
}

TEST(reasoning, style_follows_from_the_template) {
    EXPECT_EQ(reasoning_style_of("{{ '<think>' }}…{{ '</think>' }}")->close, "</think>");
    EXPECT_TRUE(reasoning_style_of("<|channel|>analysis<|message|>")->channels);
    EXPECT_EQ(reasoning_style_of("<|channel>thought\n<channel|>")->open, "<|channel>thought");
    EXPECT_FALSE(reasoning_style_of("{{ messages }}"));
    EXPECT_TRUE(opens_reasoning("…<|im_start|>assistant\n<think>\n", kThink));
    EXPECT_FALSE(opens_reasoning("…<think>\n\n</think>\n\n", kThink));
}

}  // namespace
}  // namespace cadans::text
