// Tools and their conversations as they stand in a client's body.
#include "serve/dialects/tool_fields.h"

#include <gtest/gtest.h>

#include "serve/testing/asked_tools.h"

namespace cadans::serve {
namespace {

using nlohmann::ordered_json;
using testing::error_of;
using testing::kTools;
using testing::use_of;

TEST(tools, choices_say_what_may_be_called) {
    EXPECT_EQ(use_of({}).choice, ToolChoice::automatic);
    EXPECT_EQ(use_of({}).tools.size(), 2u);
    EXPECT_TRUE(use_of({}).parallel);
    EXPECT_FALSE(use_of({{"parallel_tool_calls", false}}).parallel);
    EXPECT_EQ(use_of({{"tool_choice", "required"}}).choice, ToolChoice::required);
    const ToolUse none = use_of({{"tool_choice", "none"}});
    EXPECT_TRUE(none.choice == ToolChoice::none && none.tools.empty() && none.offered.is_null());
    const ToolUse one = use_of({{"tool_choice", {{"type", "function"}, {"function", {{"name", "now"}}}}}});
    EXPECT_EQ(one.choice, ToolChoice::required);
    ASSERT_EQ(one.tools.size(), 1u);
    EXPECT_EQ(one.tools[0].name, "now");
    EXPECT_EQ(one.offered.size(), 2u) << "the prompt stays the same";
    EXPECT_EQ(use_of({{"tools", ordered_json::array()}}).choice, ToolChoice::none);
}

TEST(tools, that_cannot_be_offered_are_refused_by_place) {
    const auto tool = [](ordered_json function) {
        return ordered_json{
            {"tools", ordered_json::array({{{"type", "function"}, {"function", std::move(function)}}})}};
    };
    EXPECT_EQ(error_of({{"tools", 5}}).where, "tools");
    EXPECT_EQ(error_of({{"tools", {5}}}).where, "tools[0]");
    EXPECT_EQ(error_of({{"tools", {{{"type", "web"}}}}}).where, "tools[0].type");
    EXPECT_EQ(error_of({{"tools", {{{"type", "function"}}}}}).where, "tools[0].function");
    EXPECT_EQ(error_of(tool({{"name", "a b"}})).where, "tools[0].function.name");
    EXPECT_EQ(error_of(tool({{"name", std::string(200, 'a')}})).where, "tools[0].function.name");
    EXPECT_EQ(error_of(tool({{"name", "a"}, {"parameters", 5}})).where, "tools[0].function.parameters");
    ordered_json twice = {{"tools", {kTools[0], kTools[0]}}};
    EXPECT_EQ(error_of(twice).where, "tools[1].function.name");
    EXPECT_EQ(error_of({{"tool_choice", "required"}}).where, "tool_choice");
    EXPECT_EQ(error_of({{"tools", kTools}, {"tool_choice", 5}}).where, "tool_choice");
    EXPECT_EQ(
        error_of({{"tools", kTools}, {"tool_choice", {{"type", "function"}, {"function", {{"name", "x"}}}}}}).where,
        "tool_choice");
}

TEST(tools, messages_become_what_templates_read) {
    const auto calls = read_tool_calls(ordered_json::parse(R"([
        {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{\"a\": 1}"}},
        {"function": {"name": "g", "arguments": {"b": 2}}}, {"id": "x", "function": {"name": "h", "arguments": "no json"}}])"),
                                       "m");
    ASSERT_TRUE(calls.has_value());
    EXPECT_EQ((*calls)[0]["function"]["arguments"]["a"], 1);
    EXPECT_EQ((*calls)[1]["function"]["arguments"]["b"], 2);
    EXPECT_EQ((*calls)[2]["function"]["arguments"], "no json");
    EXPECT_FALSE(read_tool_calls(5, "m").has_value());
    EXPECT_EQ(read_tool_calls({{{"function", 1}}}, "m").error().where, "m[0].function");

    ordered_json messages = {{{"role", "user"}, {"content", "u"}},
                             {{"role", "assistant"}, {"content", ""}, {"tool_calls", *calls}},
                             {{"role", "tool"}, {"content", "r"}, {"tool_call_id", "call_1"}},
                             {{"role", "tool"}, {"content", "s"}, {"tool_call_id", "x"}}};
    ordered_json mistral = messages;
    finish_tool_messages(messages, CallStyle::tagged);
    EXPECT_EQ(messages[2]["name"], "f");
    EXPECT_EQ(messages[2]["tool_call_id"], "call_1");
    EXPECT_EQ(messages[1]["tool_calls"][1]["id"], "unnamed_1");
    finish_tool_messages(mistral, CallStyle::listed);
    EXPECT_EQ(mistral[2]["tool_call_id"].get<std::string>().size(), 9u);
    EXPECT_EQ(mistral[2]["tool_call_id"], mistral[1]["tool_calls"][0]["id"]);

    ToolUse use = use_of({});
    write_tools_as_text(messages, use, false);
    ASSERT_EQ(messages.size(), 4u) << "a system message more, two results in one";
    EXPECT_EQ(messages[0]["role"], "system");
    EXPECT_NE(messages[0]["content"].get<std::string>().find("light.on"), std::string::npos);
    EXPECT_NE(messages[2]["content"].get<std::string>().find("<tool_call>\n{\"name\":\"f\",\"arguments\":{\"a\":1}}"),
              std::string::npos);
    EXPECT_EQ(messages[3]["role"], "user");
    EXPECT_NE(messages[3]["content"].get<std::string>().find("r\n</tool_response>\n<tool_response>\ns"),
              std::string::npos);
}

/// With a scan for each result this would be 10^11 steps.
TEST(tools, a_giant_conversation_is_read_in_one_pass) {
    constexpr int kCalls = 200'000;
    ordered_json calls = ordered_json::array(), messages = ordered_json::array();
    for (int i = 0; i < kCalls; i++)
        calls.push_back({{"id", "c" + std::to_string(i)}, {"function", {{"name", "f"}, {"arguments", {{"i", i}}}}}});
    messages.push_back({{"role", "assistant"}, {"content", ""}, {"tool_calls", calls}});
    for (int i = 0; i < kCalls; i++) {
        ordered_json result = {{"role", "tool"}, {"content", "r"}};
        // Of the last, of none, and of whichever is the first.
        if (i % 3 != 2) result["tool_call_id"] = i % 3 == 0 ? "c" + std::to_string(kCalls - 1 - i) : "none";
        messages.push_back(std::move(result));
    }
    finish_tool_messages(messages, CallStyle::tagged);
    EXPECT_EQ(messages[1]["name"], "f");
    EXPECT_EQ(messages[1]["tool_call_id"], "c" + std::to_string(kCalls - 1));
    EXPECT_FALSE(messages[2].contains("name"));
    EXPECT_EQ(messages[3]["tool_call_id"], "c0");
    EXPECT_EQ(messages[6]["tool_call_id"], "c1");
    write_tools_as_text(messages, use_of({}), false);
    EXPECT_EQ(messages.size(), 3u) << "the system's, the calls, all results in one";
}

}  // namespace
}  // namespace cadans::serve
