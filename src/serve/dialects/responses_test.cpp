// OpenAI's responses route, from outside, over the fake engine.
#include <gtest/gtest.h>

#include "serve/testing/test_house.h"

namespace cadans::serve {
namespace {

using nlohmann::ordered_json;

constexpr const char* kPath = "/v1/responses";
constexpr const char* kTools =
    R"(, "tools": [{"type": "function", "name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}}}])";
constexpr const char* kSays =
    "<think>hm</think>ok\n<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": 1}}</tool_call>";

std::string body(const std::string& more = "") { return R"({"model": "toy", "input": "hi")" + more + "}"; }

TEST(responses, gives_items) {
    TestHouse house;
    house.say(kSays);
    const TestReply reply = house.post(kPath, body(kTools));
    ASSERT_EQ(reply.status, 200) << reply.body;
    const ordered_json response = reply.json();
    EXPECT_EQ(response["object"], "response");
    EXPECT_EQ(response["status"], "completed");
    ASSERT_EQ(response["output"].size(), 3u) << reply.body;
    EXPECT_EQ(response["output"][0]["type"], "reasoning");
    EXPECT_EQ(response["output"][0]["content"][0]["text"], "hm");
    EXPECT_EQ(response["output"][1]["content"][0]["text"], "ok");
    EXPECT_EQ(response["output"][2]["type"], "function_call");
    EXPECT_EQ(response["output"][2]["name"], "f");
    EXPECT_EQ(response["output"][2]["arguments"], "{\"a\": 1}");
    for (const ordered_json& item : response["output"]) EXPECT_EQ(item["status"], "completed");
    EXPECT_EQ(response["usage"]["total_tokens"],
              response["usage"]["input_tokens"].get<int>() + response["usage"]["output_tokens"].get<int>());
    EXPECT_EQ(response["tools"].size(), 1u) << "the request is told back";
    EXPECT_EQ(response["store"], false);
    EXPECT_TRUE(response.contains("cadans"));
}

TEST(responses, streams_what_it_gives_whole) {
    TestHouse house;
    house.say(kSays);
    const TestReply reply = house.post(kPath, body(std::string(kTools) + R"(, "stream": true)"));
    std::vector<ordered_json> sent;
    for (size_t at = 0; at < reply.body.size();) {
        const size_t data = reply.body.find("\ndata: ", at), end = reply.body.find("\n\n", at);
        ASSERT_NE(end, std::string::npos);
        sent.push_back(ordered_json::parse(reply.body.substr(data + 7, end - data - 7), nullptr, false));
        EXPECT_EQ("event: " + sent.back()["type"].get<std::string>(), reply.body.substr(at, data - at));
        EXPECT_EQ(sent.back()["sequence_number"], sent.size() - 1);
        at = end + 2;
    }
    ASSERT_GT(sent.size(), 8u);
    EXPECT_EQ(sent[0]["type"], "response.created");
    EXPECT_EQ(sent[0]["response"]["status"], "in_progress");
    EXPECT_EQ(sent[1]["type"], "response.in_progress");
    std::vector<std::string> grown, done;
    for (const ordered_json& event : sent) {
        const std::string type = event["type"];
        if (type == "response.output_item.added") {
            EXPECT_EQ(event["output_index"], grown.size());
            EXPECT_EQ(done.size(), grown.size()) << "one at a time";
            grown.emplace_back();
        }
        if (type.ends_with(".delta")) grown.at(event["output_index"]) += event["delta"].get<std::string>();
        if (type == "response.output_text.done" || type == "response.reasoning_text.done")
            done.push_back(event["text"]);
        if (type == "response.function_call_arguments.done") done.push_back(event["arguments"]);
    }
    EXPECT_EQ(grown, (std::vector<std::string>{"hm", "ok", "{\"a\": 1}"}));
    EXPECT_EQ(done, grown);
    EXPECT_EQ(sent.back()["type"], "response.completed");
    const ordered_json whole = house.post(kPath, body(kTools)).json();
    ASSERT_EQ(sent.back()["response"]["output"].size(), whole["output"].size());
    EXPECT_EQ(sent.back()["response"]["output"][1]["content"], whole["output"][1]["content"]);
    EXPECT_EQ(sent.back()["response"]["usage"]["output_tokens"], whole["usage"]["output_tokens"]);
}

TEST(responses, that_are_cut_are_incomplete) {
    TestHouse house;
    house.say(kSays);
    const ordered_json cut = house.post(kPath, body(R"(, "max_output_tokens": 5)")).json();
    EXPECT_EQ(cut["status"], "incomplete");
    EXPECT_EQ(cut["incomplete_details"]["reason"], "max_output_tokens");
    EXPECT_EQ(cut["output"].back()["status"], "incomplete");
    const TestReply stream = house.post(kPath, body(R"(, "max_output_tokens": 5, "stream": true)"));
    EXPECT_NE(stream.body.find("event: response.incomplete"), std::string::npos);
}

TEST(responses, read_items_of_every_kind) {
    TestHouse house;
    const std::string items =
        R"({"instructions": "be brief", "max_output_tokens": 3, "input": [
            {"role": "user", "content": [{"type": "input_text", "text": "hello"}]},
            {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "t"}]},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "so"}]},
            {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{\"a\": 2}"},
            {"type": "function_call", "call_id": "d", "name": "f", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c", "output": "sun"},
            {"type": "function_call_output", "call_id": "d", "output": [{"type": "input_text", "text": "rain"}]}])" +
        std::string(kTools) + "}";
    const TestReply reply = house.post(kPath, items);
    ASSERT_EQ(reply.status, 200) << reply.body;
    const std::string chat =
        R"({"max_tokens": 3, "messages": [{"role": "system", "content": "be brief"}, {"role": "user", "content": "hello"},
            {"role": "assistant", "content": "so", "reasoning_content": "t", "tool_calls": [{"id": "c", "function": {"name": "f", "arguments": {"a": 2}}}, {"id": "d", "function": {"name": "f", "arguments": {}}}]},
            {"role": "tool", "tool_call_id": "c", "content": "sun"}, {"role": "tool", "tool_call_id": "d", "content": "rain"}],
            "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}}}}]})";
    EXPECT_EQ(reply.json()["usage"]["input_tokens"],
              house.post("/v1/chat/completions", chat).json()["usage"]["prompt_tokens"])
        << "the same prompt as over the other route";
}

TEST(responses, refuse_by_place) {
    TestHouse house;
    struct Bad {
        std::string body, where;
    };
    for (
        const Bad& bad :
        {Bad{"{}", "input"}, Bad{R"({"input": []})", "input"},
         Bad{R"({"input": [{"role": "robot", "content": "a"}]})", "input[0].role"},
         Bad{R"({"input": [{"type": "item_reference"}]})", "input[0].type"},
         Bad{R"({"input": [{"role": "user", "content": [{"type": "input_image"}]}]})", "input[0].content[0].type"},
         Bad{R"({"input": [{"type": "function_call", "call_id": "c", "arguments": "{}"}]})", "input[0].name"},
         Bad{body(R"(, "previous_response_id": "x")"), "previous_response_id"},
         Bad{body(R"(, "background": true)"), "background"},
         Bad{body(R"(, "tools": [{"type": "web_search"}])"), "tools[0].type"},
         Bad{body(
                 R"(, "tools": [{"type": "function", "name": "a", "parameters": {"properties": {"x": {"not": {"const": 1}}}}}])"),
             "tools[0].parameters#/properties/x/not"},
         Bad{body(R"(, "text": {"format": {"type": "json_schema", "schema": {"type": "thing"}}})"),
             "text.format.schema#/type"},
         Bad{body(R"(, "text": {"format": {"type": "xml"}})"), "text.format"}}) {
        const TestReply reply = house.post(kPath, bad.body);
        EXPECT_EQ(reply.status, 400) << bad.body << reply.body;
        EXPECT_EQ(reply.json()["error"]["param"], bad.where) << reply.body;
    }
}

TEST(responses, tell_what_a_template_says_of_the_clients_own_item) {
    TestHouse house({.template_source = kAlternating});
    const TestReply reply = house.post(
        kPath,
        R"({"instructions": "s", "input": [{"role": "user", "content": "a"}, {"role": "user", "content": "b"}]})");
    EXPECT_EQ(reply.status, 400) << reply.body;
    EXPECT_EQ(reply.json()["error"]["param"], "input[1]") << reply.body;
}

}  // namespace
}  // namespace cadans::serve
