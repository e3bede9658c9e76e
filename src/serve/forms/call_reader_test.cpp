#include "serve/forms/call_reader.h"

#include <gtest/gtest.h>

namespace cadans::serve {
namespace {

struct Read {
    std::string content;
    std::vector<std::pair<std::string, std::string>> calls;  // name, arguments
    std::vector<bool> over;
};

/// Reads a text in pieces of this many bytes; checks that names come once and first.
Read read(CallStyle style, std::string_view text, size_t bytes) {
    CallReader reader(style);
    Read out;
    const auto take = [&](const ReadText& some) {
        out.content += some.content;
        for (const CallPiece& piece : some.calls) {
            EXPECT_EQ(piece.first, piece.index == out.calls.size());
            EXPECT_EQ(piece.first, !piece.name.empty());
            if (piece.first) {
                out.calls.emplace_back(piece.name, "");
                out.over.push_back(false);
            }
            EXPECT_EQ(piece.index + 1, out.calls.size()) << "calls come one after the other";
            out.calls.back().second += piece.arguments;
            EXPECT_FALSE(out.over.back()) << "nothing comes behind a last piece";
            out.over.back() = piece.last;
        }
    };
    for (size_t at = 0; at < text.size(); at += bytes) take(reader.push(text.substr(at, bytes)));
    take(reader.finish());
    EXPECT_EQ(reader.calls(), out.calls.size());
    return out;
}

struct Case {
    CallStyle style;
    const char* text;
    const char* content;
    std::vector<std::pair<std::string, std::string>> calls;
};

const Case kCases[] = {
    {CallStyle::tagged, "just words <tool", "just words <tool", {}},
    {CallStyle::tagged, " two  spaces \n", " two  spaces \n", {}},
    {CallStyle::tagged, "", "", {}},
    {CallStyle::tagged,
     "<tool_call>\n{\"name\": \"a.b\", \"arguments\": {\"x\": \"}{<tool_call>\\\"\", \"y\": [{}, 1]}}\n</tool_call>",
     "",
     {{"a.b", R"({"x": "}{<tool_call>\"", "y": [{}, 1]})"}}},
    {CallStyle::tagged,
     "Let me see.\n\n<tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call>\n<tool_call>\n{\n  \"name\": \"name\",\n "
     " "
     "\"arguments\": {\"arguments\": 1}\n}\n</tool_call>",
     "Let me see.",
     {{"f", "{}"}, {"name", R"({"arguments": 1})"}}},
    {CallStyle::bare, "\n{\"name\": \"f\", \"parameters\": {\"a\": \"\\\\\"}}", "", {{"f", R"({"a": "\\"})"}}},
    {CallStyle::bare, "Well {then}", "Well {then}", {}},
    {CallStyle::bare, "<|python_tag|>{\"name\": \"f\", \"parameters\": {}}", "", {{"f", "{}"}}},
    {CallStyle::listed,
     "[TOOL_CALLS] [{\"name\": \"f\", \"arguments\": {\"x\": [1]}}, {\"name\": \"g\", \"arguments\": {}}]",
     "",
     {{"f", R"({"x": [1]})"}, {"g", "{}"}}},
    {CallStyle::named,
     "Yes[TOOL_CALLS]f[ARGS]{\"x\": 1}[TOOL_CALLS]g[ARGS]{}",
     "Yes",
     {{"f", R"({"x": 1})"}, {"g", "{}"}}},
    {CallStyle::channel,
     "I look.<|channel|>commentary to=functions.a.b <|constrain|>json<|message|>{\"x\": \"<|channel|>}\"}",
     "I look.",
     {{"a.b", R"({"x": "<|channel|>}"})"}}},
    {CallStyle::channel, "<|channel|>commentary to=functions.f<|message|>{}", "", {{"f", "{}"}}},
    {CallStyle::escaped,
     "Yes\n<start_function_call>call:f{a:<escape>}, "
     "\"b\"\n<esc<escape>,c:{d:[1,-2.5,<escape><escape>,null]}}<end_function_call>"
     "<start_function_call>call:g{}<end_function_call><start_function_response>",
     "Yes",
     {{"f", R"({"a":"}, \"b\"\n<esc","c":{"d":[1,-2.5,"",null]}})"}, {"g", "{}"}}},
    {CallStyle::quoted,
     "<|tool_call>call:f{ a: <|\"|>x\\<|<|\"|>, b:[{c:true},{}] }<tool_call|><|tool_response>",
     "",
     {{"f", R"({"a":"x\\<|","b":[{"c":true},{}]})"}}},
};

TEST(call_reader, finds_words_and_calls_wherever_the_text_is_cut) {
    for (const Case& one : kCases)
        for (const size_t bytes : {1u, 2u, 3u, 7u, 16u, 1000u}) {
            const Read got = read(one.style, one.text, bytes);
            EXPECT_EQ(got.content, one.content) << one.text << bytes;
            EXPECT_EQ(got.calls, one.calls) << one.text << bytes;
            for (const bool over : got.over) EXPECT_TRUE(over);
        }
}

TEST(call_reader, ends_a_call_whose_arguments_are_no_object) {
    for (const char* arguments : {"5", "null", "\"}{\"", "[{}]", "true"})
        for (const size_t bytes : {1u, 3u, 1000u}) {
            const std::string call = "<tool_call>{\"name\": \"f\", \"arguments\": " + std::string(arguments) + "}";
            const Read got = read(CallStyle::tagged, call + "</tool_call>" + call + "</tool_call>", bytes);
            EXPECT_EQ(got.calls, (std::vector<std::pair<std::string, std::string>>(2, {"f", arguments})));
            EXPECT_EQ(got.over, std::vector<bool>(2, true)) << arguments;
        }
}

TEST(call_reader, leaves_the_marks_in_a_text_that_has_a_form) {
    for (const char* text : {"{\"a\":\"<tool_call>{\"}", " \n{\"a\": 1} <tool_call>", "<tool_", "<tool_x", " ", ""})
        for (const size_t bytes : {1u, 3u, 1000u}) {
            CallReader reader(CallStyle::tagged, true);
            std::string content;
            const std::string_view whole = text;
            for (size_t at = 0; at < whole.size(); at += bytes) content += reader.push(whole.substr(at, bytes)).content;
            EXPECT_EQ(content + reader.finish().content, text);
            EXPECT_EQ(reader.calls(), 0u);
        }
    CallReader reader(CallStyle::tagged, true);
    reader.push("\n<tool_call>{\"name\": \"f\", \"arguments\": {}}");
    EXPECT_EQ(reader.calls(), 1u);
}

TEST(call_reader, shows_arguments_as_they_come_and_no_last_piece_of_a_call_that_is_cut) {
    CallReader reader(CallStyle::tagged);
    EXPECT_TRUE(reader.push("<tool_call>{\"name\": \"f\", \"argu").calls.empty());
    ReadText some = reader.push("ments\": {\"a");
    ASSERT_EQ(some.calls.size(), 1u);
    EXPECT_EQ(some.calls[0].name, "f");
    EXPECT_EQ(some.calls[0].arguments, "{\"a");
    some = reader.push("\": 1");
    ASSERT_EQ(some.calls.size(), 1u);
    EXPECT_FALSE(some.calls[0].first || some.calls[0].last);
    EXPECT_TRUE(reader.finish().content.empty());
}

}  // namespace
}  // namespace cadans::serve
