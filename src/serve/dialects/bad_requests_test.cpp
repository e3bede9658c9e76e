// What clients should not send: the table, and a thousand bodies that a mutator made.
#include <gtest/gtest.h>

#include "base/random.h"
#include "serve/dialects/request_fuzz.h"
#include "serve/doors.h"
#include "serve/testing/test_house.h"

namespace cadans::serve {
namespace {

using nlohmann::ordered_json;

struct Bad {
    const char* path;
    const char* body;
    const char* param;  ///< what the error names
};

constexpr const char* kChat = "/v1/chat/completions";
constexpr const char* kText = "/v1/completions";

constexpr const char* kResponses = "/v1/responses";

const Bad kBad[] = {
    {kResponses, R"({"input": "a", "tool_choice": "required"})", "tool_choice"},
    {kChat, R"({"messages": [{"role": "user", "content": "a"}], "tool_choice": "required"})", "tool_choice"},
    {kText, R"({})", "prompt"},
    {kText, R"({"prompt": null})", "prompt"},
    {kText, R"({"prompt": []})", "prompt"},
    {kText, R"({"prompt": 5})", "prompt"},
    {kText, R"({"prompt": ""})", "prompt"},
    {kText, R"({"prompt": [[]]})", "prompt"},
    {kText, R"({"prompt": ["a", 1]})", "prompt[1]"},
    {kText, R"({"prompt": [[1], "a"]})", "prompt[1]"},
    {kText, R"({"prompt": [1, -1]})", "prompt[1]"},
    {kText, R"({"prompt": [1.5]})", "prompt[0]"},
    {kText, R"({"prompt": [true]})", "prompt[0]"},
    {kText, R"({"prompt": [4294967296]})", "prompt[0]"},
    {kText, R"({"prompt": [[1], [269]]})", "prompt[1][0]"},
    {kText, R"({"prompt": "a", "max_tokens": -1})", "max_tokens"},
    {kText, R"({"prompt": "a", "max_tokens": 1.5})", "max_tokens"},
    {kText, R"({"prompt": "a", "max_tokens": "5"})", "max_tokens"},
    {kText, R"({"prompt": "a", "max_tokens": true})", "max_tokens"},
    {kText, R"({"prompt": "a", "max_tokens": 1e300})", "max_tokens"},
    {kText, R"({"prompt": "a", "temperature": -0.1})", "temperature"},
    {kText, R"({"prompt": "a", "temperature": 2.1})", "temperature"},
    {kText, R"({"prompt": "a", "top_p": 1.01})", "top_p"},
    {kText, R"({"prompt": "a", "min_p": -1})", "min_p"},
    {kText, R"({"prompt": "a", "top_k": -2})", "top_k"},
    {kText, R"({"prompt": "a", "presence_penalty": 3})", "presence_penalty"},
    {kText, R"({"prompt": "a", "frequency_penalty": -3})", "frequency_penalty"},
    {kText, R"({"prompt": "a", "repeat_penalty": 0})", "repeat_penalty"},
    {kText, R"({"prompt": "a", "n": 0})", "n"},
    {kText, R"({"prompt": "a", "n": 17})", "n"},
    {kText, R"({"prompt": "a", "best_of": 2})", "best_of"},
    {kText, R"({"prompt": "a", "best_of": 2, "n": 4})", "best_of"},
    {kText, R"({"prompt": "a", "logprobs": 21})", "logprobs"},
    {kText, R"({"prompt": "a", "logprobs": true})", "logprobs"},
    {kText, R"({"prompt": "a", "seed": 1.5})", "seed"},
    {kText, R"({"prompt": "a", "seed": "1"})", "seed"},
    {kText, R"({"prompt": "a", "stop": [1]})", "stop[0]"},
    {kText, R"({"prompt": "a", "stop": ""})", "stop"},
    {kText, R"({"prompt": "a", "stop": ["b", ""]})", "stop[1]"},
    {kText, R"({"prompt": "a", "stop_token_ids": [-1]})", "stop_token_ids[0]"},
    {kText, R"({"prompt": "a", "logit_bias": []})", "logit_bias"},
    {kText, R"({"prompt": "a", "logit_bias": {"abc": 1}})", "logit_bias.abc"},
    {kText, R"({"prompt": "a", "logit_bias": {"270": 1}})", "logit_bias.270"},
    {kText, R"({"prompt": "a", "logit_bias": {"5": 101}})", "logit_bias.5"},
    {kText, R"({"prompt": "a", "logit_bias": {"5": 1, "05": 2}})", "logit_bias"},
    {kText, R"({"prompt": "a", "stream": "yes"})", "stream"},
    {kText, R"({"prompt": "a", "stream_options": 1})", "stream_options"},
    {kText, R"({"prompt": "a", "stream_options": {"include_usage": 1}})", "stream_options.include_usage"},
    {kText, R"({"prompt": "a", "priority": "urgent"})", "priority"},
    {kText, R"({"prompt": "a", "speculate": "always"})", "speculate"},
    {kText, R"({"prompt": "a", "speculate": true})", "speculate"},
    {kText, R"({"prompt": "a", "suffix": "b"})", "suffix"},
    {kText, R"({"prompt": "a", "grammar": "b"})", "grammar"},
    {kText, R"({"prompt": "a", "model": 5})", "model"},
    {kText, R"({"prompt": "a", "prompt": "b"})", "prompt"},
    {kChat, R"({})", "messages"},
    {kChat, R"({"messages": []})", "messages"},
    {kChat, R"({"messages": "a"})", "messages"},
    {kChat, R"({"messages": [1]})", "messages[0]"},
    {kChat, R"({"messages": [{}]})", "messages[0].role"},
    {kChat, R"({"messages": [{"role": "user"}]})", "messages[0].content"},
    {kChat, R"({"messages": [{"role": "user", "content": null}]})", "messages[0].content"},
    {kChat, R"({"messages": [{"role": "user", "content": 5}]})", "messages[0].content"},
    {kChat, R"({"messages": [{"role": "wizard", "content": "a"}]})", "messages[0].role"},
    {kChat, R"({"messages": [{"role": "function", "content": "a"}]})", "messages[0].role"},
    {kChat, R"({"messages": [{"role": "tool", "content": null}]})", "messages[0].content"},
    {kChat, R"({"messages": [{"role": "user", "content": "a", "tool_calls": [{}]}]})", "messages[0].tool_calls"},
    {kChat, R"({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]})", "messages[0].content[0].type"},
    {kChat, R"({"messages": [{"role": "user", "content": [{"type": "text"}]}]})", "messages[0].content[0].text"},
    {kChat, R"({"messages": [{"role": "assistant", "tool_calls": [{}]}]})", "messages[0].tool_calls[0].function"},
    {kChat, R"({"messages": [{"role": "user", "content": "a"}], "tools": [{}]})", "tools[0].function"},
    {kChat,
     R"({"messages": [{"role": "user", "content": "a"}], "tools": [{"type": "function", "function": {"name": "f", "parameters": {"properties": {"x": {"not": {"const": 1}}}}}}]})",
     "tools[0].function.parameters#/properties/x/not"},
    {kText, R"({"prompt": "a", "tools": [{"type": "function"}]})", "tools"},
    {kChat, R"({"messages": [{"role": "user", "content": "a"}], "tool_choice": "required"})", "tool_choice"},
    {kChat, R"({"messages": [{"role": "user", "content": "a"}], "response_format": "json"})", "response_format"},
    {kChat, R"({"messages": [{"role": "user", "content": "a"}], "response_format": {"type": "xml"}})",
     "response_format.type"},
    {kChat, R"({"messages": [{"role": "user", "content": "a"}], "response_format": {"type": "json_schema"}})",
     "response_format.json_schema"},
    {kChat,
     R"({"messages": [{"role": "user", "content": "a"}], "response_format": {"type": "json_schema", "json_schema": {"name": "x"}}})",
     "response_format.json_schema.schema"},
    {kChat,
     R"({"messages": [{"role": "user", "content": "a"}], "response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {"properties": {"a": {"not": {"const": 1}}}}}}})",
     "response_format.json_schema.schema#/properties/a/not"},
    {kText, R"({"prompt": "a", "json_schema": {"type": "integer", "minimum": "b"}})", "json_schema#/minimum"},
    {kText, R"({"prompt": "a", "json_schema": 5})", "json_schema"},
    {kText, R"({"prompt": "a", "regex": "^+a$"})", "regex"},
    {kText, R"({"prompt": "a", "grammar": "root ::= \"\""})", "grammar"},
    {kText, R"({"prompt": "a", "grammar": "root ::= root \"x\""})", "grammar"},
    {kText, R"({"prompt": "a", "guided_choice": [[]]})", "guided_choice"},
    {kText, R"({"prompt": "a", "guided_choice": ["b", 1]})", "guided_choice"},
    {kText, R"({"prompt": "a", "structured_outputs": {"grammar": "x"}})", "structured_outputs.grammar"},
    {kText, R"({"prompt": "a", "grammar": "root ::= \"x\"", "regex": "x"})", "regex"},
    {kChat, R"({"messages": [{"role": "user", "content": "a"}], "top_logprobs": 2})", "top_logprobs"},
    {kChat, R"({"messages": [{"role": "user", "content": "a"}], "max_completion_tokens": -1})",
     "max_completion_tokens"},
    {kChat, R"({"messages": [{"role": "user", "content": "a"}], "chat_template_kwargs": {"messages": []}})",
     "chat_template_kwargs.messages"},
};

TEST(bad_requests, are_400_and_name_the_field) {
    TestHouse house;
    TestClient client(house.server->port());
    for (const Bad& bad : kBad) {
        const TestReply reply = client.exchange("POST", bad.path, bad.body);
        EXPECT_EQ(reply.status, 400) << bad.body << reply.body;
        const ordered_json error = reply.json()["error"];
        EXPECT_EQ(error["param"], bad.param) << bad.body << reply.body;
        EXPECT_TRUE(error["message"].is_string() && error["type"].is_string() && error["code"].is_string());
    }
    EXPECT_EQ(client.exchange("POST", kText, R"({"prompt": "a", "max_tokens": 1})").status, 200);
    EXPECT_EQ(house.inbox->in_flight(), 0u);
}

TEST(bad_requests, in_ollamas_form_say_what_is_wrong) {
    TestHouse house;
    TestClient client(house.server->port());
    for (const char* body :
         {R"({"prompt": 5})", R"({"prompt": "a", "options": []})",
          R"({"prompt": "a", "options": {"temperature": "hot"}})", R"({"prompt": "a", "options": {"num_ctx": 0}})",
          R"({"prompt": "a", "format": "yaml"})", R"({"prompt": "a", "format": {"type": "thing"}})",
          R"({"prompt": "a", "images": ["x"]})", R"({"prompt": "a", "suffix": "b"})",
          R"({"prompt": "a", "template": "b"})", R"({"prompt": "a", "stream": 1})",
          R"({"prompt": "a", "options": {"mirostat": 1}})", R"([])"}) {
        const TestReply reply = client.exchange("POST", "/api/generate", body);
        EXPECT_EQ(reply.status, 400) << body << reply.body;
        EXPECT_TRUE(reply.json()["error"].is_string()) << reply.body;
    }
}

TEST(harmless_requests, are_served) {
    TestHouse house;
    TestClient client(house.server->port());
    for (const char* body :
         {R"({"prompt": " ", "max_tokens": 0})",
          R"({"prompt": "a", "max_tokens": null, "n": null, "stop": null, "seed": null})",
          R"({"prompt": "a", "max_tokens": 2.0, "seed": -9223372036854775808})",
          R"({"prompt": "a", "seed": 18446744073709551615})",
          R"({"prompt": "a", "tools": [], "suffix": "", "best_of": 1, "response_format": {"type": "text"}})",
          R"({"prompt": "a", "temperature": 0, "top_p": 0, "stop": []})",
          R"({"prompt": "a", "store": true, "metadata": {"x": [1, {"y": 2}]}})",
          R"({"prompt": "a", "model": "default"})", R"({"prompt": "a", "model": ""})", R"({"prompt": "a\u0000b"})"}) {
        const TestReply reply = client.exchange("POST", kText, body);
        EXPECT_EQ(reply.status, 200) << body << reply.body;
    }
}

const char* const kSeeds[] = {
    R"({"model":"toy","messages":[{"role":"system","content":"be brief"},{"role":"user","content":[{"type":"text","text":"hi"}]}],"stream":true,"stream_options":{"include_usage":true},"max_tokens":3,"temperature":0.7,"logprobs":true,"top_logprobs":2})",
    R"({"prompt":["one","two"],"max_tokens":2,"n":2,"stop":["x","yz"],"logit_bias":{"5":-100,"17":3.5},"echo":true,"logprobs":1,"seed":12})",
    R"({"prompt":[[1,2,3],[4]],"max_tokens":0,"echo":true,"logprobs":3,"return_token_ids":true})",
    R"({"model":"toy:latest","messages":[{"role":"user","content":"x"}],"options":{"num_predict":2,"num_ctx":512,"stop":["a"],"seed":-1},"think":false})",
    R"({"prompt":"hi","system":"s","raw":false,"stream":false,"options":{"temperature":0.1,"top_k":4,"repeat_penalty":1.2}})",
    R"({"messages":[{"role":"user","content":"a"},{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{\"x\": [1]}"}}]},{"role":"tool","tool_call_id":"c1","content":"r"}],"tools":[{"type":"function","function":{"name":"f","description":"d","parameters":{"type":"object","properties":{"x":{"type":"array","items":{"$ref":"#/$defs/n"}}},"$defs":{"n":{"type":"integer","minimum":1}}}}},{"type":"function","function":{"name":"g"}}],"tool_choice":{"type":"function","function":{"name":"f"}},"parallel_tool_calls":false,"max_tokens":3})",
    R"({"messages":[{"role":"user","content":[{"type":"text","text":"a"}]},{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":""},{"type":"tool_use","id":"u1","name":"f","input":{"x":1}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"u1","content":[{"type":"text","text":"r"}]}]}],"tools":[{"name":"f","input_schema":{"type":"object","properties":{"x":{"type":"integer"}}},"defer_loading":true}],"tool_choice":{"type":"any","disable_parallel_tool_use":true},"system":[{"type":"text","text":"s"}],"max_tokens":3})",
    R"({"input":[{"role":"user","content":[{"type":"input_text","text":"a"}]},{"type":"function_call","call_id":"k","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"k","output":"r"}],"tools":[{"type":"function","name":"f","parameters":{"type":"object","properties":{}},"strict":true}],"tool_choice":"required","text":{"format":{"type":"json_object"}},"max_output_tokens":3})",
    R"({"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"","tool_calls":[{"function":{"name":"f","arguments":{"x":1}}}]},{"role":"tool","content":"r","tool_name":"f"}],"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{"x":{"type":"string","pattern":"^a{1,3}$"}},"required":["x"]}}}],"format":{"type":"object"},"options":{"num_predict":2},"stream":false})",
    R"({"input":["a",""],"encoding_format":"base64"})",
};

// Changes a few places: bytes, pieces of JSON, cuts and doublings.
std::string mutated(std::string text, uint64_t seed) {
    static const char* const kPieces[] = {
        "null", "-1",   "1e308", "[",     "]",        "{",  "}",        "\"", ",",    ":",  "true",
        "\\u",  "\xFF", "0.5",   "[[[[[", "99999999", "\\", "\xE2\x82", "{}", "\"\"", "[]", "18446744073709551616"};
    const uint64_t changes = 1 + mix64(seed) % 4;
    for (uint64_t i = 0; i < changes; ++i) {
        const uint64_t dice = mix64(seed * 31 + i + 1);
        const size_t at = text.empty() ? 0 : (dice >> 8) % text.size();
        const char* piece = kPieces[(dice >> 40) % std::size(kPieces)];
        switch (dice % 6) {
            case 0:
                text.insert(at, piece);
                break;
            case 1:
                text.erase(at, 1 + (dice >> 32) % 8);
                break;
            case 2:
                if (!text.empty()) text[at] = static_cast<char>(dice >> 48);
                break;
            case 3:
                text.insert(at, text.substr(at / 2, (dice >> 24) % 40));
                break;
            case 4: {
                const size_t colon = text.find(':', at);
                const size_t end = colon == std::string::npos ? colon : text.find_first_of(",}", colon);
                if (end != std::string::npos) text.replace(colon + 1, end - colon - 1, piece);
                break;
            }
            default:
                text.resize(at);
                break;
        }
    }
    return text;
}

TEST(mutated_bodies, never_break_what_a_request_promises) {
    const text::Tokenizer tokenizer = test_tokenizer();
    auto chat_template = text::ChatTemplate::parse(kTestTemplate);
    ASSERT_TRUE(chat_template);
    ModelCard card;
    card.name = "toy";
    card.tokenizer = &tokenizer;
    card.chat_template = &*chat_template;
    card.context_tokens = 4096;
    const Catalog catalog({card});
    for (uint64_t seed = 0; seed < 20'000; ++seed)
        fuzz_request_body(mutated(kSeeds[seed % std::size(kSeeds)], seed), catalog);
}

TEST(mutated_bodies, never_give_a_500) {
    TestHouse house;
    const char* paths[] = {kChat,
                           kText,
                           "/api/chat",
                           "/api/generate",
                           "/tokenize",
                           "/detokenize",
                           "/apply-template",
                           "/api/show",
                           "/v1/messages",
                           "/v1/messages/count_tokens",
                           "/v1/responses",
                           "/v1/embeddings",
                           "/api/embed",
                           "/api/embeddings"};
    auto client = std::make_unique<TestClient>(house.server->port());
    for (uint64_t seed = 0; seed < 1400; ++seed) {
        const std::string body = mutated(kSeeds[mix64(seed) % std::size(kSeeds)], seed);
        // An answer that would be endless is cut by leaving.
        const std::string request = TestClient::request("POST", paths[seed % std::size(paths)], body);
        ASSERT_TRUE(client->send(request)) << seed;
        ASSERT_TRUE(client->until("\r\n")) << seed;
        const int status = std::atoi(client->received().c_str() + 9);
        EXPECT_TRUE(status == 200 || status == 400 || status == 404 || status == 413)
            << status << " for seed " << seed << ": " << body;
        client = std::make_unique<TestClient>(house.server->port());
    }
    EXPECT_TRUE(house.empties());
    EXPECT_EQ(house.post(kText, R"({"prompt": "a", "max_tokens": 1})").status, 200);
}

}  // namespace
}  // namespace cadans::serve
