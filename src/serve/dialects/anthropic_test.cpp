// Anthropic's messages route, from outside, over the fake engine.
#include <gtest/gtest.h>

#include "serve/testing/test_house.h"

namespace cadans::serve {
namespace {

using nlohmann::ordered_json;

constexpr const char* kPath = "/v1/messages";

std::string body(const std::string& more = "") {
    return R"({"model": "toy", "max_tokens": 300, "messages": [{"role": "user", "content": "hi"}])" + more + "}";
}

constexpr const char* kTools =
    R"(, "tools": [{"name": "f", "input_schema": {"type": "object", "properties": {"a": {"type": "integer"}}}}])";

struct SentEvent {
    std::string name;
    ordered_json data;
};

std::vector<SentEvent> events(const std::string& text) {
    std::vector<SentEvent> out;
    for (size_t at = 0; at < text.size();) {
        const size_t line = text.find('\n', at), end = text.find("\n\n", at);
        if (end == text.npos) break;
        EXPECT_EQ(text.substr(at, 7), "event: ");
        EXPECT_EQ(text.substr(line + 1, 6), "data: ");
        out.push_back({text.substr(at + 7, line - at - 7),
                       ordered_json::parse(text.substr(line + 7, end - line - 7), nullptr, false)});
        EXPECT_EQ(out.back().data["type"], out.back().name);
        at = end + 2;
    }
    return out;
}

TEST(anthropic, gives_a_message_of_blocks) {
    TestHouse house;
    house.say("<think>let me see</think>\n\nyes");
    const TestReply reply = house.post(kPath, body());
    ASSERT_EQ(reply.status, 200) << reply.body;
    const ordered_json message = reply.json();
    EXPECT_EQ(message["type"], "message");
    EXPECT_EQ(message["role"], "assistant");
    ASSERT_EQ(message["content"].size(), 2u) << reply.body;
    EXPECT_EQ(message["content"][0]["type"], "thinking");
    EXPECT_EQ(message["content"][0]["thinking"], "let me see");
    EXPECT_EQ(message["content"][1]["text"], "yes");
    EXPECT_EQ(message["stop_reason"], "end_turn");
    EXPECT_TRUE(message["stop_sequence"].is_null());
    const ordered_json chat = house.post("/v1/chat/completions", body()).json();
    EXPECT_EQ(message["usage"]["input_tokens"], chat["usage"]["prompt_tokens"]);
    EXPECT_EQ(message["usage"]["output_tokens"], chat["usage"]["completion_tokens"]);
    EXPECT_TRUE(message.contains("cadans"));
    EXPECT_TRUE(message["id"].get<std::string>().starts_with("msg_"));
}

TEST(anthropic, streams_blocks_one_behind_the_other) {
    TestHouse house;
    house.say("<think>hm</think>ok\n<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": 1}}</tool_call>");
    const auto sent = events(house.post(kPath, body(std::string(kTools) + R"(, "stream": true)")).body);
    ASSERT_GT(sent.size(), 5u);
    EXPECT_EQ(sent.front().name, "message_start");
    EXPECT_EQ(sent.back().name, "message_stop");
    std::vector<std::string> kinds;
    std::string thinking, text, input;
    int open = -1;
    for (const SentEvent& event : sent) {
        if (event.name == "content_block_start") {
            EXPECT_EQ(open, -1) << "one at a time";
            open = event.data["index"];
            EXPECT_EQ(open, static_cast<int>(kinds.size()));
            kinds.push_back(event.data["content_block"]["type"]);
        } else if (event.name == "content_block_stop") {
            EXPECT_EQ(event.data["index"], open);
            open = -1;
        } else if (event.name == "content_block_delta") {
            EXPECT_EQ(event.data["index"], open);
            const ordered_json& delta = event.data["delta"];
            thinking += delta.value("thinking", "");
            text += delta.value("text", "");
            input += delta.value("partial_json", "");
        }
    }
    EXPECT_EQ(open, -1);
    EXPECT_EQ(kinds, (std::vector<std::string>{"thinking", "text", "tool_use"}));
    EXPECT_EQ(thinking, "hm");
    EXPECT_EQ(text, "ok");
    EXPECT_EQ(ordered_json::parse(input)["a"], 1);
    const ordered_json& last = sent[sent.size() - 2].data;
    EXPECT_EQ(last["type"], "message_delta");
    EXPECT_EQ(last["delta"]["stop_reason"], "tool_use");
    EXPECT_GT(last["usage"]["output_tokens"], 5);
}

TEST(anthropic, tells_why_it_stopped) {
    TestHouse house;
    house.say("one END two");
    const ordered_json stopped = house.post(kPath, body(R"(, "stop_sequences": ["zzz", "END"])")).json();
    EXPECT_EQ(stopped["stop_reason"], "stop_sequence");
    EXPECT_EQ(stopped["stop_sequence"], "END");
    EXPECT_EQ(stopped["content"][0]["text"], "one ");
    const ordered_json cut =
        house.post(kPath, R"({"max_tokens": 2, "messages": [{"role": "user", "content": "hi"}]})").json();
    EXPECT_EQ(cut["stop_reason"], "max_tokens");
}

TEST(anthropic, reads_system_texts_tools_calls_and_results) {
    TestHouse house;
    const std::string talk =
        R"({"max_tokens": 5, "system": [{"type": "text", "text": "be brief", "cache_control": {"type": "ephemeral"}}], "messages": [
            {"role": "user", "content": [{"type": "text", "text": "hello"}]},
            {"role": "assistant", "content": [{"type": "thinking", "thinking": "t", "signature": ""}, {"type": "tool_use", "id": "x", "name": "f", "input": {"a": 3}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "x", "content": [{"type": "text", "text": "sun"}]}, {"type": "text", "text": "and?"}]}])" +
        std::string(kTools) + R"(, "metadata": {"user_id": "me"}})";
    const TestReply reply = house.post(kPath, talk);
    ASSERT_EQ(reply.status, 200) << reply.body;
    EXPECT_EQ(reply.json()["cadans"]["client"], "me");
    const TestReply count = house.post("/v1/messages/count_tokens", talk);
    ASSERT_EQ(count.status, 200) << count.body;
    EXPECT_EQ(count.json()["input_tokens"], reply.json()["usage"]["input_tokens"]);
    EXPECT_GT(count.json()["input_tokens"], 100);
}

std::string many_tools(int count) {
    std::string out;
    for (int i = 0; i < count; i++) out += (i ? ", " : "") + ("{\"name\": \"t" + std::to_string(i)) + "\"}";
    return out;
}

TEST(anthropic, refuses_in_its_own_form_and_by_place) {
    TestHouse house;
    struct Bad {
        std::string body;
        const char* word;
    };
    for (
        const Bad& bad :
        {Bad{"{}", "messages"},
         Bad{R"({"messages": []})", "messages"},
         Bad{R"({"messages": [{"role": "robot", "content": "a"}]})", "messages[0].role"},
         Bad{R"({"messages": [{"role": "user"}]})", "messages[0].content"},
         Bad{R"({"messages": [{"role": "user", "content": [{"type": "image"}]}]})", "messages[0].content[0].type"},
         Bad{R"({"messages": [{"role": "user", "content": [{"type": "tool_use", "id": "x", "name": "f", "input": {}}]}]})",
             "messages[0].content[0].type"},
         Bad{R"({"messages": [{"role": "assistant", "content": [{"type": "tool_use", "id": "x", "input": {}}]}]})",
             "messages[0].content[0].name"},
         Bad{R"({"messages": [{"role": "assistant", "content": [{"type": "tool_use", "id": "x", "name": "f", "input": 5}]}]})",
             "messages[0].content[0].input"},
         Bad{body(R"(, "temperature": "hot")"), "temperature"},
         Bad{body(R"(, "system": 5)"), "system"},
         Bad{body(R"(, "tools": [{"name": "a b"}])"), "tools[0].name"},
         Bad{body(R"(, "tools": [{"type": "web_search", "name": "a"}])"), "tools[0].type"},
         Bad{body(R"(, "tools": [{"name": "a", "input_schema": {"properties": {"x": {"not": {"const": 1}}}}}])"),
             "tools[0].input_schema#/properties/x/not"},
         Bad{body(std::string(kTools) + R"(, "tool_choice": {"type": "tool", "name": "z"})"), "tool_choice"},
         Bad{body(R"(, "output_config": {"format": {"type": "xml"}})"), "output_config.format"},
         Bad{body(R"(, "output_config": {"format": {"type": 5, "schema": {}}})"), "output_config.format"},
         Bad{body(R"(, "metadata": {"user_id": 5})"), "metadata.user_id"},
         Bad{body(R"(, "tool_choice": {"type": "any"})"), "tool_choice"},
         Bad{body(", \"tools\": [" + many_tools(513) + "]"), "at most 512"},
         Bad{"[]", "object"}}) {
        const TestReply reply = house.post(kPath, bad.body);
        EXPECT_EQ(reply.status, 400) << bad.body << reply.body;
        const ordered_json error = reply.json();
        EXPECT_EQ(error["type"], "error") << reply.body;
        EXPECT_EQ(error["error"]["type"], "invalid_request_error");
        EXPECT_NE(error["error"]["message"].get<std::string>().find(bad.word), std::string::npos) << reply.body;
    }
    const ordered_json missing =
        house.post(kPath, R"({"model": "nobody", "messages": [{"role": "user", "content": "a"}]})").json();
    EXPECT_EQ(missing["error"]["type"], "not_found_error");
    EXPECT_EQ(house.get(kPath).status, 405);
    EXPECT_EQ(house.get(kPath).json()["type"], "error");
}

TEST(anthropic, tells_what_a_template_says_of_the_clients_own_message) {
    TestHouse house({.template_source = kAlternating});
    const TestReply reply = house.post(
        kPath,
        R"({"max_tokens": 5, "system": "s", "messages": [{"role": "user", "content": "a"}, {"role": "user", "content": "b"}]})");
    EXPECT_EQ(reply.status, 400) << reply.body;
    EXPECT_NE(reply.body.find("messages[1]: one after the other"), std::string::npos) << reply.body;
}

}  // namespace
}  // namespace cadans::serve
