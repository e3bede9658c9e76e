// Calls of tools on the wire of each dialect, over the fake engine.
#include <gtest/gtest.h>

#include "serve/dialects/answer_writer.h"
#include "serve/testing/test_house.h"

namespace cadans::serve {
namespace {

using nlohmann::ordered_json;

constexpr const char* kSays =
    "Let me see.\n<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": \"\xC3\xA9\"}}\n</tool_call>\n"
    "<tool_call>\n{\"name\": \"g\", \"arguments\": {}}\n</tool_call>";
constexpr const char* kTools =
    R"("tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "string"}}}}}, {"type": "function", "function": {"name": "g"}}])";

std::string body(const std::string& more) {
    return R"({"messages": [{"role": "user", "content": "hi"}], )" + std::string(kTools) + more + "}";
}

ordered_json parsed(const std::string& text) { return ordered_json::parse(text, nullptr, false); }

TEST(tool_answers, in_openais_form) {
    TestHouse house;
    house.say(kSays);
    const TestReply whole = house.post("/v1/chat/completions", body(""));
    ASSERT_EQ(whole.status, 200) << whole.body;
    const ordered_json choice = whole.json()["choices"][0];
    EXPECT_EQ(choice["finish_reason"], "tool_calls");
    EXPECT_EQ(choice["message"]["content"], "Let me see.");
    const ordered_json calls = choice["message"]["tool_calls"];
    ASSERT_EQ(calls.size(), 2u);
    EXPECT_EQ(calls[0]["type"], "function");
    EXPECT_EQ(calls[0]["function"]["name"], "f");
    EXPECT_EQ(calls[0]["function"]["arguments"], "{\"a\": \"\xC3\xA9\"}");
    EXPECT_FALSE(calls[0].contains("index"));
    EXPECT_NE(calls[0]["id"], calls[1]["id"]);

    const auto frames = house.post("/v1/chat/completions", body(", \"stream\": true")).frames();
    std::string content;
    std::vector<std::string> arguments;
    for (size_t i = 0; i + 1 < frames.size(); ++i) {
        const ordered_json frame = parsed(frames[i]);
        const ordered_json& delta = frame["choices"][0]["delta"];
        content += delta.value("content", "");
        EXPECT_EQ(frame["choices"][0]["finish_reason"].is_null(), i + 2 < frames.size());
        if (!delta.contains("tool_calls")) continue;
        EXPECT_EQ(delta["tool_calls"].size(), 1u) << "there are clients that look at the first alone";
        EXPECT_FALSE(delta.contains("content") || delta.contains("role"));
        for (const ordered_json& call : delta["tool_calls"]) {
            const bool first = call["index"] == arguments.size();
            if (first) arguments.emplace_back();
            EXPECT_EQ(call["index"], arguments.size() - 1);
            EXPECT_EQ(call.contains("id"), first);
            EXPECT_EQ(call.contains("type"), first);
            EXPECT_EQ(call["function"].contains("name"), first);
            arguments.back() += call["function"]["arguments"].get<std::string>();
        }
    }
    EXPECT_EQ(content, "Let me see.");
    EXPECT_EQ(arguments, (std::vector<std::string>{"{\"a\": \"\xC3\xA9\"}", "{}"}));
    EXPECT_EQ(parsed(frames[frames.size() - 2])["choices"][0]["finish_reason"], "tool_calls");
}

TEST(tool_answers, without_words_have_no_content) {
    TestHouse house;
    house.say("<tool_call>{\"name\": \"g\", \"arguments\": {}}</tool_call>");
    const ordered_json message = house.post("/v1/chat/completions", body("")).json()["choices"][0]["message"];
    EXPECT_TRUE(message["content"].is_null());
    EXPECT_EQ(message["tool_calls"].size(), 1u);
}

TEST(tool_answers, that_are_words_are_as_without_tools) {
    TestHouse house;
    house.say("just <tool words  ");
    const ordered_json choice = house.post("/v1/chat/completions", body("")).json()["choices"][0];
    EXPECT_EQ(choice["message"]["content"], "just <tool words  ");
    EXPECT_EQ(choice["finish_reason"], "stop");
    EXPECT_FALSE(choice["message"].contains("tool_calls"));
    house.say(kSays);
    const ordered_json none = house.post("/v1/chat/completions", body(", \"tool_choice\": \"none\"")).json();
    EXPECT_EQ(none["choices"][0]["message"]["content"], kSays);
}

TEST(tool_answers, in_ollamas_form_are_whole_and_hold_objects) {
    TestHouse house;
    house.say(kSays);
    const ordered_json whole = house.post("/api/chat", body(", \"stream\": false")).json();
    ASSERT_EQ(whole["message"]["tool_calls"].size(), 2u) << whole.dump();
    EXPECT_EQ(whole["message"]["tool_calls"][0]["function"]["arguments"]["a"], "\xC3\xA9");
    EXPECT_EQ(whole["message"]["content"], "Let me see.");
    EXPECT_EQ(whole["done_reason"], "stop");
    std::vector<ordered_json> calls;
    const auto lines = house.post("/api/chat", body("")).lines();
    for (const std::string& line : lines)
        if (const ordered_json message = parsed(line)["message"]; message.contains("tool_calls"))
            for (const ordered_json& call : message["tool_calls"]) calls.push_back(call);
    ASSERT_EQ(calls.size(), 2u);
    EXPECT_EQ(calls[0]["function"]["name"], "f");
    EXPECT_EQ(calls[1]["function"]["index"], 1);
    EXPECT_EQ(calls[1]["function"]["arguments"], ordered_json::object());
    EXPECT_EQ(parsed(lines.back())["done"], true);
}

TEST(tool_answers, on_several_lines_are_one_line_of_ollamas_stream) {
    TestHouse house;
    house.say("<tool_call>{\"name\": \"f\", \"arguments\": {\n  \"a\": \"x\\ny\"\n}}</tool_call>");
    uint32_t calls = 0;
    for (const std::string& line : house.post("/api/chat", body("")).lines()) {
        const ordered_json part = parsed(line);
        ASSERT_FALSE(part.is_discarded()) << line;
        if (!part["message"].contains("tool_calls")) continue;
        calls++;
        EXPECT_EQ(part["message"]["tool_calls"][0]["function"]["arguments"]["a"], "x\ny");
    }
    EXPECT_EQ(calls, 1u);
}

TEST(tool_answers, that_are_cut_end_with_length) {
    TestHouse house;
    house.say(kSays);
    const ordered_json choice = house.post("/v1/chat/completions", body(", \"max_tokens\": 55")).json()["choices"][0];
    EXPECT_EQ(choice["finish_reason"], "length");
    ASSERT_EQ(choice["message"]["tool_calls"].size(), 1u) << choice.dump();
    const ordered_json ollama =
        house.post("/api/chat", body(", \"stream\": false, \"options\": {\"num_predict\": 55}")).json();
    EXPECT_FALSE(ollama["message"].contains("tool_calls")) << "half an object cannot be shown";
}

TEST(tool_answers, that_a_stop_cuts_inside_a_call_are_no_calls) {
    TestHouse house;
    house.say(
        "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": \"b\"}}</tool_call>\n"
        "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": \"END\"}}</tool_call>");
    const auto finish = [&](const std::string& more) {
        const ordered_json choice = house.post("/v1/chat/completions", body(more)).json()["choices"][0];
        const auto frames = house.post("/v1/chat/completions", body(more + ", \"stream\": true")).frames();
        EXPECT_EQ(parsed(frames[frames.size() - 2])["choices"][0]["finish_reason"], choice["finish_reason"]);
        return choice["finish_reason"];
    };
    EXPECT_EQ(finish(""), "tool_calls");
    EXPECT_EQ(finish(R"(, "stop": "\": \"b")"), "stop") << "the only call is cut";
    EXPECT_EQ(finish(R"(, "stop": "END")"), "stop") << "the second is";
    EXPECT_EQ(finish(R"(, "stop": "</tool_call>")"), "tool_calls") << "behind a whole one";
    const TokenId b = *house.tokenizer.vocabulary().find("b");
    EXPECT_EQ(finish(", \"stop_token_ids\": [" + std::to_string(index(b)) + "]"), "stop");

    const std::string anthropic =
        R"({"max_tokens": 500, "messages": [{"role": "user", "content": "hi"}], "tools": [{"name": "f", "input_schema": {"type": "object"}}], "stop_sequences": ["END"]})";
    const ordered_json message = house.post("/v1/messages", anthropic).json();
    EXPECT_EQ(message["stop_reason"], "stop_sequence");
    ASSERT_EQ(message["content"].size(), 1u) << message.dump();
    EXPECT_EQ(message["content"][0]["input"]["a"], "b");
}

TEST(tool_answers, that_are_cut_are_not_completed_among_responses) {
    const auto call = [](uint32_t index, const char* arguments, bool last) {
        return CallText{.index = index, .id = "c", .name = "f", .arguments = arguments, .first = true, .last = last};
    };
    ChoiceText answer;
    answer.calls = {call(0, "{}", true), call(1, "{\"a\":", false)};
    Closing closing;
    closing.cadans = "{}";
    for (const FinishReason reason : {FinishReason::stop, FinishReason::length}) {
        const auto whole =
            make_answer_writer({.form = AnswerForm::responses, .id = "r", .model = "m", .echoed = "\"x\":1"});
        const ordered_json output =
            parsed(whole->whole(std::span(&answer, 1), std::span(&reason, 1), closing))["output"];
        const auto streams =
            make_answer_writer({.form = AnswerForm::responses, .id = "r", .model = "m", .echoed = "\"x\":1"});
        std::string sent;
        streams->finish(sent, answer, reason, &closing);
        const std::string last = sent.substr(sent.rfind("\ndata: ") + 7);
        EXPECT_EQ(parsed(last)["response"]["output"], output) << last;
        ASSERT_EQ(output.size(), 2u) << output.dump();
        EXPECT_EQ(output[0]["status"], "completed");
        EXPECT_EQ(output[1]["status"], "incomplete");
    }
}

TEST(tool_answers, that_have_a_form_may_hold_the_mark_of_a_call) {
    TestHouse house;
    house.say("{\"a\": \"<tool_call>x\"}");
    const ordered_json choice =
        house.post("/v1/chat/completions", body(R"(, "response_format": {"type": "json_object"})"))
            .json()["choices"][0];
    EXPECT_EQ(choice["message"]["content"], "{\"a\": \"<tool_call>x\"}");
    EXPECT_EQ(choice["finish_reason"], "stop");
}

TEST(tool_answers, tools_and_results_reach_the_prompt) {
    TestHouse house;
    const std::string messages =
        R"({"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": null, "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{\"a\": 1}"}}]}, {"role": "tool", "tool_call_id": "c", "content": "sun"}], )";
    const std::string prompt = house.post("/apply-template", messages + kTools + "}").json()["prompt"];
    for (const char* part :
         {"<tools>", "\"name\":\"g\"", "<tool_call>\n{\"name\":\"f\",\"arguments\":{\"a\":1}}\n</tool_call>",
          "<tool_response>\nsun\n</tool_response>"})
        EXPECT_NE(prompt.find(part), std::string::npos) << part << " in " << prompt;
}

}  // namespace
}  // namespace cadans::serve
