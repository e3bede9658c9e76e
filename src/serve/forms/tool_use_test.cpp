// Answers that may call tools: walks of what may come, read back.
#include "serve/forms/tool_use.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "serve/forms/call_reader.h"
#include "serve/forms/grammar_shelf.h"
#include "serve/testing/asked_tools.h"
#include "serve/token_stream.h"
#include "text/test_vocabulary.h"

namespace cadans::serve {
namespace {

using nlohmann::ordered_json;
using testing::error_of;
using testing::kTools;
using testing::use_of;

TEST(tools, formats_are_found_in_templates) {
    const auto style = [](const char* source) { return call_format_of(source); };
    EXPECT_EQ(style("tools tool_calls <tool_call>").style, CallStyle::tagged);
    EXPECT_TRUE(style("tools tool_calls <tool_call>").in_template);
    EXPECT_EQ(style("tools tool_calls <|start_header_id|>").style, CallStyle::bare);
    EXPECT_EQ(style("tools tool_calls [TOOL_CALLS]").style, CallStyle::listed);
    EXPECT_EQ(style("tools tool_calls [TOOL_CALLS] [ARGS]").style, CallStyle::named);
    EXPECT_EQ(style("tools tool_calls <|channel|> <|call|>").style, CallStyle::channel);
    EXPECT_EQ(style("tools tool_calls <start_function_call>").style, CallStyle::escaped);
    EXPECT_EQ(style("tools tool_calls <|tool_call> <tool_call|>").style, CallStyle::quoted);
    EXPECT_FALSE(style("messages").in_template);
    EXPECT_EQ(style("messages").style, CallStyle::tagged);
}

const text::ReasoningStyle kThink{"<think>", "</think>", false};
const text::ReasoningStyle kChannels{"", "", true};

constexpr CallStyle kStyles[] = {CallStyle::tagged,  CallStyle::bare,    CallStyle::listed, CallStyle::named,
                                 CallStyle::channel, CallStyle::escaped, CallStyle::quoted};

struct Drawn {
    std::string text;  // all of it but the thinking
    std::string content;
    std::vector<std::pair<std::string, ordered_json>> calls;  // those whose last piece has come
    size_t begun = 0;                                         // calls
    bool whole = false;
};

struct Walk {
    uint64_t seed = 0;
    uint32_t most = 3000;         // tokens
    std::string_view first = {};  // as much of this as may come comes first; chance goes on from there
    Lead lead = Lead::none;
    bool text_has_form = false;
    text::AfterThinking after_thinking = text::AfterThinking::words;
    text::ReasoningStyle reasoning = kThink;
};

/// An answer drawn evenly from what may come, read back as a client would see it.
Drawn draw(Constraint& constraint, const text::Vocabulary& vocabulary, CallStyle style, Walk walk) {
    Drawn out;
    std::vector<uint64_t> bits((vocabulary.size() + 63) / 64);
    TokenStreamOptions options;
    options.starts_inside = walk.lead == Lead::rest;
    options.shows_control = true;
    if (walk.lead != Lead::none) options.reasoning = walk.reasoning;
    options.after_thinking = walk.after_thinking;
    options.calls = true;
    TokenStream stream(vocabulary, options);
    CallReader reader(style, walk.text_has_form);
    std::vector<std::string> arguments;
    const auto take = [&](const ReadText& read) {
        out.content += read.content;
        for (const CallPiece& piece : read.calls) {
            if (piece.first) {
                out.begun++;
                arguments.emplace_back();
            }
            arguments.back() += piece.arguments;
            EXPECT_FALSE(piece.first && piece.name.empty());
            if (piece.first) out.calls.emplace_back(piece.name, nullptr);
            if (piece.last) out.calls.back().second = ordered_json::parse(arguments.back(), nullptr, false);
        }
    };
    const auto push = [&](const TextDelta& delta) {
        out.text += delta.content;
        take(reader.push(delta.content));
    };
    ConstraintState at = constraint.start();
    for (uint32_t n = 0; n < walk.most && !out.whole; n++) {
        EXPECT_TRUE(constraint.allowed(at, bits));
        std::vector<TokenId> allowed;
        for (uint32_t id = 0; id < bits.size() * 64; id++)
            if (bits[id / 64] >> (id % 64) & 1) allowed.push_back(TokenId{id});
        if (allowed.empty()) break;
        TokenId token = allowed[mix64(walk.seed * 1000 + n) % allowed.size()];
        size_t used = 0;
        for (const TokenId id : allowed) {
            const std::string_view bytes = vocabulary.ends_generation(id) ? "" : vocabulary.bytes(id);
            if (bytes.size() <= used || !walk.first.starts_with(bytes)) continue;
            token = id;
            used = bytes.size();
        }
        walk.first = used == 0 ? "" : walk.first.substr(used);
        out.whole = vocabulary.ends_generation(token);
        if (out.whole) break;
        push(stream.push(token));
        at = constraint.after(at, token);
        out.whole = constraint.complete(at);
    }
    push(stream.finish(!out.whole));
    take(reader.finish());
    if (!out.whole && !out.calls.empty() && out.calls.back().second.is_null()) out.calls.pop_back();
    return out;
}

void check_calls(const Drawn& drawn, size_t most) {
    EXPECT_LE(drawn.calls.size(), most);
    for (const auto& [name, arguments] : drawn.calls) {
        if (name == "now") {
            EXPECT_EQ(arguments, ordered_json::object());
            continue;
        }
        EXPECT_EQ(name, "light.on");
        ASSERT_TRUE(arguments.is_object() && arguments.size() == 1) << arguments.dump();
        EXPECT_TRUE(arguments["room"] == "a" || arguments["room"] == "b");
    }
}

TEST(tools, calls_of_every_style_are_read_back_and_their_arguments_fit) {
    const auto made = text::Vocabulary::make(text::small_bpe());
    const text::Vocabulary& vocabulary = *made;
    for (const CallStyle style : kStyles) {
        GrammarShelf shelf(vocabulary, std::nullopt, style);
        for (const bool parallel : {true, false}) {
            ToolUse use = use_of({{"tool_choice", "required"}, {"parallel_tool_calls", parallel}});
            const auto constraint = shelf.get({}, use, Lead::none);
            ASSERT_TRUE(constraint.has_value()) << constraint.error().message;
            size_t most_calls = 0;
            for (uint64_t seed = 0; seed < 60; seed++) {
                const Drawn drawn = draw(**constraint, vocabulary, style, {.seed = seed});
                ASSERT_TRUE(drawn.whole);
                EXPECT_EQ(drawn.content, "");
                EXPECT_GE(drawn.calls.size(), 1u);
                check_calls(drawn, parallel ? 100 : 1);
                most_calls = std::max(most_calls, drawn.calls.size());
            }
            EXPECT_EQ(most_calls > 1, parallel && style != CallStyle::bare && style != CallStyle::channel);
        }
    }
}

TEST(tools, what_all_of_them_may_cost_is_what_one_form_may) {
    const auto made = text::Vocabulary::make(text::small_bpe());
    GrammarShelf shelf(*made, std::nullopt);
    ordered_json body;
    for (int i = 0; i < 500; i++) {
        const ordered_json text = {{"type", "string"}, {"maxLength", 4'096 - i}};
        body["tools"].push_back({{"type", "function"},
                                 {"function",
                                  {{"name", "f" + std::to_string(i)},
                                   {"parameters", {{"type", "object"}, {"properties", {{"a", text}}}}}}}});
    }
    const auto constraint = shelf.get({}, use_of(body), Lead::none);
    ASSERT_FALSE(constraint.has_value());
    const std::string& where = constraint.error().where;
    ASSERT_TRUE(where.starts_with("tools[")) << where;
    EXPECT_LT(std::stoi(where.substr(6)), 20) << "refused where it becomes too much, before the others are written";
    EXPECT_NE(constraint.error().message.find("larger than is allowed"), std::string::npos);
}

TEST(tools, an_answer_may_be_words_and_may_end_behind_any_character) {
    const auto made = text::Vocabulary::make(text::small_bpe());
    for (const CallStyle style : kStyles) {
        GrammarShelf shelf(*made, std::nullopt, style);
        const auto constraint = shelf.get({}, use_of({}), Lead::none);
        ASSERT_TRUE(constraint.has_value());
        uint32_t ended = 0;
        for (uint64_t seed = 0; seed < 60; seed++) {
            const Drawn drawn = draw(**constraint, *made, style, {.seed = seed, .most = 2000});
            ended += drawn.whole;
            EXPECT_EQ(drawn.content.find("\xEF\xBF\xBD"), std::string::npos) << "half a character";
        }
        EXPECT_GT(ended, 40u);
    }
}

/// Beginnings of answers that a reader could take for what they are not.
const std::string_view kTempting[] = {
    "",
    "\n",
    "{",
    "\n{\"x\": 1}",
    " \t\r\n {\"name\": \"rm\", \"parameters\": 5}",
    "{\"name\": \"rm\", \"parameters\": {}}",
    "{\"name\": \"light.on\", \"parameters\": {\"room\": \"a\"}}",
    "<|python_tag|>{\"name\": \"now\", \"parameters\": {\"x\": 1}}",
    "\n<|python_tag|>{\"name\": \"now\"",
    "Words {\"name\": \"rm\"}",
    "<tool_call>\n{\"name\": \"rm\"",
    "Words \n<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call>\n<tool_call>{\"name\"",
    "<tool_call>{\"name\": \"light.on\", \"arguments\": [",
    "<tool",
    "[TOOL_CALLS] [{\"name\": \"now\", \"arguments\": {}}, {\"name\": \"light.on\", \"arguments\": \"",
    "\n[TOOL_CALLS][",
    "Words[TOOL_CALLS]now[ARGS]{}[TOOL_CALLS]rm[ARGS]5",
    "[TOOL_CALLS]now[ARGS]5",
    "<think>",
    "<think>a</think>{\"x\": 1}",
    "\n<think>a <tool_call> [TOOL_CALLS] </think>\n \t{\"name\": \"rm\", \"parameters\": {}}",
    "<think></think>     {\"x\": 1}",
    "<think>a</think><tool_call>\n{\"name\": \"rm\"",
    "a</think>\n{\"x\": 1}",
    "a</think>\n\n<tool_call>\n{\"name\": \"now\"",
    "a</think>[TOOL_CALLS]",
    "</think>\n\n\n\n\n\n{\"name\": \"rm\", \"parameters\": 5}",
    "Words<start_function_call>call:light.on{room:<escape>a<escape>}<end_function_call><start_function_call>call:rm",
    "<start_function_call>call:now{x:1}",
    "a</think><|tool_call>call:light.on{room:<|\"|>b<|\"|>}<tool_call|><|tool_response>",
    "<|channel|>commentary to=functions.now <|constrain|>json<|message|>{}",
    "a</think>\n<start_function_call>call:now{}",
    "a</think><|channel|>commentary to=functions.now <|constrain|>json<|message|>{}",
};

TEST(tools, an_answer_that_may_call_is_words_as_they_were_written_or_calls_of_what_is_offered) {
    const auto made = text::Vocabulary::make(text::small_bpe());
    for (const CallStyle style : kStyles)
        for (const Lead lead : {Lead::none, Lead::thinking, Lead::rest}) {
            GrammarShelf shelf(*made, kThink, style);
            const auto constraint = shelf.get({}, use_of({}), lead);
            ASSERT_TRUE(constraint.has_value()) << constraint.error().message;
            uint32_t words = 0, calls = 0;
            for (const std::string_view first : kTempting)
                for (uint64_t seed = 0; seed < 6; seed++) {
                    const Drawn drawn =
                        draw(**constraint, *made, style, {.seed = seed, .most = 600, .first = first, .lead = lead});
                    SCOPED_TRACE(std::to_string(static_cast<int>(style)) + " " +
                                 std::to_string(static_cast<int>(lead)) + " " + std::string(first));
                    check_calls(drawn, 100);
                    EXPECT_TRUE(drawn.begun == drawn.calls.size() || !drawn.whole);
                    EXPECT_TRUE(drawn.text.starts_with(drawn.content));
                    const bool in_head = !drawn.whole && drawn.text.find(mark_of(style)) != std::string::npos;
                    if (drawn.begun == 0 && !in_head) {
                        EXPECT_EQ(drawn.content, drawn.text);
                    }
                    words += drawn.begun == 0;
                    calls += drawn.calls.size() > 0;
                }
            EXPECT_GT(words, 10u);
            EXPECT_GT(calls, 5u);
        }
}

TEST(tools, a_text_that_has_a_form_may_hold_the_mark_of_a_call) {
    const auto made = text::Vocabulary::make(text::small_bpe());
    const ordered_json schema = ordered_json::parse(
        R"({"type": "object", "properties": {"a": {"type": "string", "maxLength": 60}}, "required": ["a"]})");
    const TextForm form{.kind = TextForm::Kind::schema, .schema = schema, .field = "response_format"};
    for (const CallStyle style : {CallStyle::tagged, CallStyle::listed, CallStyle::named}) {
        GrammarShelf shelf(*made, kThink, style);
        const std::string text = "{\"a\":\"" + std::string(mark_of(style)) + "x{";
        for (const Lead lead : {Lead::none, Lead::thinking}) {
            const auto constraint = shelf.get(form, use_of({}), lead);
            ASSERT_TRUE(constraint.has_value()) << constraint.error().message;
            const std::string lead_text = lead == Lead::none ? "" : "<think>" + text + "</think>\n\n";
            for (const std::string& first : {text, lead_text + text, std::string(mark_of(style))})
                for (uint64_t seed = 0; seed < 6; seed++) {
                    const Drawn drawn = draw(**constraint, *made, style,
                                             {.seed = seed, .first = first, .lead = lead, .text_has_form = true});
                    ASSERT_TRUE(drawn.whole);
                    check_calls(drawn, 100);
                    EXPECT_EQ(drawn.begun > 0, first == mark_of(style)) << drawn.text;
                    if (drawn.begun > 0) continue;
                    EXPECT_EQ(drawn.content, drawn.text);
                    EXPECT_TRUE(drawn.content.starts_with(text)) << drawn.content;
                    EXPECT_FALSE(ordered_json::parse(drawn.content, nullptr, false).is_discarded()) << drawn.content;
                }
        }
    }
}

const std::string kCallsNow = "<|channel|>commentary to=functions.now <|constrain|>json<|message|>{}";

/// Beginnings of answers whose messages a reader could part otherwise than the grammar does.
const std::string kTemptingMessages[] = {
    "",
    kCallsNow,
    "<|channel|>analysis<|message|>hm<|end|><|start|>assistant" + kCallsNow,
    "<|channel|>analysis<|message|>a<|channel|>commentary to=functions.rm <|constrain|>json<|message|>{\"x\": 1}",
    "<|channel|>analysis<|message|>a<|start|>assistant" + kCallsNow,
    "<|channel|>analysis<|message|>a<|call|><|end|><|start|>assistant<|channel|>final<|message|>b",
    "<|channel|>final<|message|>Hi <|channel|>commentary to=functions.rm <|constrain|>json<|message|>{",
    "<|channel|>final<|message|>Hi <|end|><|start|>assistant to=functions.rm<|channel|>commentary<|message|>{}",
    "<|channel|>final<|message|>Hi" + kCallsNow,
    "<|channel|>commentary<|message|>I look<|end|><|start|>assistant" + kCallsNow,
    "<|channel|>commentary to=functions.light.on <|constrain|>json<|message|>{\"room\": \"<|end|>",
    " to=functions.now<|channel|>commentary json<|message|>{}",
    "a<|end|><|start|>assistant" + kCallsNow,
    "a<|end|><|start|>assistant<|channel|>final<|message|>Hi",
    "<|end|><|start|>assistant<|channel|>commentary<|message|>I look<|end|><|start|>assistant" + kCallsNow,
};

TEST(tools, with_channels_a_call_is_a_message_and_no_other_message_is_one) {
    const auto made = text::Vocabulary::make(text::small_bpe());
    for (const Lead lead : {Lead::thinking, Lead::rest})
        for (const bool required : {false, true}) {
            GrammarShelf shelf(*made, kChannels, CallStyle::channel);
            ordered_json body = ordered_json::object();
            if (required) body["tool_choice"] = "required";
            const auto constraint = shelf.get({}, use_of(body), lead);
            ASSERT_TRUE(constraint.has_value()) << constraint.error().message;
            uint32_t words = 0, calls = 0;
            for (const std::string& first : kTemptingMessages)
                for (uint64_t seed = 0; seed < 6; seed++) {
                    SCOPED_TRACE(first);
                    const Drawn drawn =
                        draw(**constraint, *made, CallStyle::channel,
                             {.seed = seed, .most = 600, .first = first, .lead = lead, .reasoning = kChannels});
                    check_calls(drawn, 1);
                    EXPECT_TRUE(drawn.begun == drawn.calls.size() || !drawn.whole);
                    for (const char* mark : {"<|channel|>", "<|start|>", "<|end|>", "<|message|>"})
                        EXPECT_EQ(drawn.content.find(mark), std::string::npos) << drawn.content;
                    words += !drawn.content.empty();
                    calls += drawn.calls.size() > 0;
                    EXPECT_TRUE(!required || drawn.content.empty());
                }
            EXPECT_EQ(words > 5, !required);
            EXPECT_GT(calls, 5u);
        }
}

TEST(tools, with_channels_a_form_may_hold_their_marks) {
    const auto made = text::Vocabulary::make(text::small_bpe());
    const ordered_json schema = ordered_json::parse(
        R"({"type": "object", "properties": {"a": {"type": "string", "maxLength": 60}}, "required": ["a"]})");
    const TextForm form{.kind = TextForm::Kind::schema, .schema = schema, .field = "response_format"};
    const std::string text = "{\"a\":\"<|end|>x<|channel|>final<|message|>";
    GrammarShelf shelf(*made, kChannels, CallStyle::channel);
    for (const bool tools : {false, true}) {
        const auto constraint = shelf.get(form, tools ? use_of({}) : ToolUse{}, Lead::thinking);
        ASSERT_TRUE(constraint.has_value()) << constraint.error().message;
        for (const std::string& thinks :
             {std::string(), std::string("<|channel|>analysis<|message|>a<|end|><|start|>assistant")})
            for (uint64_t seed = 0; seed < 6; seed++) {
                const std::string first = thinks + "<|channel|>final<|message|>" + text;
                const Drawn drawn = draw(**constraint, *made, CallStyle::channel,
                                         {.seed = seed,
                                          .first = first,
                                          .lead = Lead::thinking,
                                          .text_has_form = true,
                                          .after_thinking = text::AfterThinking::form,
                                          .reasoning = kChannels});
                ASSERT_TRUE(drawn.whole);
                EXPECT_TRUE(drawn.content.starts_with(text)) << drawn.content;
                EXPECT_FALSE(ordered_json::parse(drawn.content, nullptr, false).is_discarded()) << drawn.content;
            }
    }
}

TEST(tools, with_bare_names_arguments_of_every_kind_are_json_to_the_client) {
    const auto made = text::Vocabulary::make(text::small_bpe());
    const ordered_json parameters = ordered_json::parse(R"({"type": "object", "properties": {
        "text": {"type": "string", "maxLength": 40}, "word": {"type": "string", "pattern": "^[a-c\"{]{1,3}$"},
        "list": {"type": "array", "items": {"type": ["integer", "null", "string"], "maxLength": 8}, "maxItems": 3},
        "deep": {"type": "object", "properties": {"ok": {"type": "boolean"}, "which": {"enum": ["a,b", "c:{d}", 5, {"e": ["f"]}]}},
                 "required": ["ok", "which"], "additionalProperties": false}},
        "required": ["text", "word", "list", "deep"], "additionalProperties": {"type": "number"}})");
    const ordered_json tool = {{"type", "function"}, {"function", {{"name", "f"}, {"parameters", parameters}}}};
    for (const CallStyle style : {CallStyle::escaped, CallStyle::quoted}) {
        GrammarShelf shelf(*made, std::nullopt, style);
        const auto constraint = shelf.get({}, use_of({{"tools", {tool}}, {"tool_choice", "required"}}), Lead::none);
        ASSERT_TRUE(constraint.has_value()) << constraint.error().message;
        const std::string quote = bare_marks(style)->quote;
        const std::string first =
            std::string(mark_of(style)) + "call:f{text:" + quote + "say \"hi\",\n{x:1}\\<" + quote + ",word:";
        uint32_t seen = 0;
        for (uint64_t seed = 0; seed < 60; seed++) {
            const Drawn drawn = draw(**constraint, *made, style, {.seed = seed, .most = 2000, .first = first});
            for (const auto& [name, arguments] : drawn.calls) {
                ASSERT_TRUE(arguments.is_object()) << drawn.text;
                ASSERT_TRUE(arguments["text"].is_string() && arguments["word"].is_string()) << drawn.text;
                EXPECT_LE(arguments["list"].size(), 3u);
                EXPECT_TRUE(arguments["deep"]["ok"].is_boolean());
                for (const auto& [key, value] : arguments.items())
                    EXPECT_TRUE(parameters["properties"].contains(key) || value.is_number()) << key;
            }
            if (drawn.calls.empty()) continue;
            seen++;
            EXPECT_EQ(drawn.calls[0].second["text"], "say \"hi\",\n{x:1}\\<");
        }
        EXPECT_GT(seen, 30u);
        ordered_json other = tool;
        other["function"]["parameters"]["properties"]["two words"] = true;
        const auto refused = shelf.get({}, use_of({{"tools", {other}}}), Lead::none);
        ASSERT_FALSE(refused.has_value());
        EXPECT_EQ(refused.error().where, "tools[0].function.parameters#/properties/two words");
    }
}

TEST(tools, with_channels_each_call_of_a_conversation_is_followed_by_its_result) {
    const auto call = [](const char* id) {
        return ordered_json{
            {"id", id}, {"type", "function"}, {"function", {{"name", "f"}, {"arguments", {{"id", id}}}}}};
    };
    ordered_json messages = {
        {{"role", "user"}, {"content", "u"}},
        {{"role", "assistant"}, {"content", "w"}, {"reasoning_content", "t"}, {"tool_calls", {call("a"), call("b")}}},
        {{"role", "tool"}, {"content", "of b"}, {"tool_call_id", "b"}},
        {{"role", "tool"}, {"content", "of nobody"}, {"tool_call_id", "x"}},
        {{"role", "tool"}, {"content", "of a"}, {"tool_call_id", "a"}},
        {{"role", "assistant"}, {"content", "end"}, {"reasoning_content", "s"}}};
    finish_tool_messages(messages, CallStyle::channel);
    ASSERT_EQ(messages.size(), 7u);
    EXPECT_EQ(messages[1]["tool_calls"].size(), 1u);
    EXPECT_EQ(messages[1]["content"], "w");
    EXPECT_FALSE(messages[1].contains("thinking")) << "such a template takes one of both";
    EXPECT_EQ(messages[2]["content"], "of a");
    EXPECT_EQ(messages[3]["tool_calls"][0]["id"], "b");
    EXPECT_EQ(messages[3]["content"], "");
    EXPECT_EQ(messages[4]["content"], "of b");
    EXPECT_EQ(messages[5]["content"], "of nobody");
    EXPECT_EQ(messages[6]["thinking"], "s");
}

TEST(tools, a_form_that_could_begin_as_a_call_does_is_refused) {
    const auto made = text::Vocabulary::make(text::small_bpe());
    GrammarShelf shelf(*made, kThink);
    using Kind = TextForm::Kind;
    for (const TextForm& form :
         {TextForm{.kind = Kind::regex, .source = "[ \\n]?<.*", .field = "regex"},
          TextForm{.kind = Kind::choice, .choices = {"no", "\n <tool_call>x"}, .field = "guided_choice"},
          TextForm{.kind = Kind::gbnf, .source = "root ::= [^q]+", .field = "grammar"}}) {
        const auto refused = shelf.get(form, use_of({}), Lead::thinking);
        ASSERT_FALSE(refused.has_value()) << form.field;
        EXPECT_EQ(refused.error().code, ErrorCode::unsupported);
        EXPECT_EQ(refused.error().where, form.field);
        EXPECT_TRUE(shelf.get(form, {}, Lead::thinking).has_value());
        EXPECT_TRUE(shelf.get(form, use_of({{"tool_choice", "required"}}), Lead::thinking).has_value());
    }
    for (const TextForm& form :
         {TextForm{.kind = Kind::regex, .source = "[a-z]*<tool_call>", .field = "regex"},
          TextForm{.kind = Kind::choice, .choices = {"<tool_call", "x <tool_call>"}, .field = "guided_choice"},
          TextForm{.kind = Kind::json_object, .field = "response_format"}}) {
        const auto taken = shelf.get(form, use_of({}), Lead::none);
        EXPECT_EQ(taken.has_value(), form.kind != Kind::regex) << form.field << ": [a-z]* may be empty";
    }
}

TEST(tools, arguments_are_an_object_whatever_else_their_schema_allows) {
    const auto made = text::Vocabulary::make(text::small_bpe());
    const auto tools = [](ordered_json parameters) {
        ordered_json tool = kTools[1];
        tool["function"]["parameters"] = std::move(parameters);
        return ordered_json{{"tools", {tool}}, {"tool_choice", "required"}};
    };
    for (const char* type : {R"("string")", R"(["string", "null"])", "[]"}) {
        const Error refused = error_of(tools({{"type", ordered_json::parse(type)}}));
        EXPECT_EQ(refused.where, "tools[0].function.parameters") << type;
        EXPECT_NE(refused.message.find("object"), std::string::npos) << refused.message;
    }
    for (const char* schema :
         {R"({"type": ["object", "null"], "properties": {"x": {"type": "null"}}})",
          R"({"anyOf": [{"type": "integer"}, {"type": "object", "properties": {"x": {"type": "null"}}}]})",
          R"({"$schema": "http://json-schema.org/draft-07/schema#", "$ref": "#/definitions/d", "definitions": {"d":
              {"type": ["object", "boolean", "array"], "properties": {"x": {"type": "null"}}}}})"}) {
        GrammarShelf shelf(*made, std::nullopt);
        const auto constraint = shelf.get({}, use_of(tools(ordered_json::parse(schema))), Lead::none);
        ASSERT_TRUE(constraint.has_value()) << constraint.error().message;
        for (uint64_t seed = 0; seed < 30; seed++) {
            const Drawn drawn = draw(**constraint, *made, CallStyle::tagged, {.seed = seed});
            ASSERT_TRUE(drawn.whole && !drawn.calls.empty());
            for (const auto& call : drawn.calls) EXPECT_TRUE(call.second.is_object()) << schema << drawn.text;
        }
    }
}

TEST(tools, names_that_are_required_and_not_described_may_have_any_value) {
    const auto made = text::Vocabulary::make(text::small_bpe());
    for (const char* properties : {"", R"("properties": {}, )"}) {
        const ordered_json tool = {
            {"type", "function"},
            {"function",
             {{"name", "f"},
              {"parameters", ordered_json::parse(R"({"type": "object", )" + std::string(properties) +
                                                 R"("required": ["x", "y"]})")}}}};
        GrammarShelf shelf(*made, std::nullopt);
        const auto constraint = shelf.get({}, use_of({{"tools", {tool}}, {"tool_choice", "required"}}), Lead::none);
        ASSERT_TRUE(constraint.has_value()) << constraint.error().message;
        const std::string first = R"(<tool_call>{"name": "f", "arguments": {"x": [1, {}], "y": "z"}})";
        const Drawn drawn = draw(**constraint, *made, CallStyle::tagged, {.first = first});
        ASSERT_FALSE(drawn.calls.empty());
        EXPECT_EQ(drawn.calls[0].second, ordered_json::parse(R"({"x": [1, {}], "y": "z"})"));
    }
    // What is no list of names stays for the schema's own error.
    ordered_json wrong = kTools[1];
    wrong["function"]["parameters"] = {{"properties", ordered_json::array()}, {"required", {"x"}}};
    GrammarShelf shelf(*made, std::nullopt);
    EXPECT_FALSE(shelf.get({}, use_of({{"tools", {wrong}}}), Lead::none).has_value());
}

TEST(tools, schemas_that_cannot_be_kept_name_tool_and_place) {
    const auto made = text::Vocabulary::make(text::small_bpe());
    GrammarShelf shelf(*made, std::nullopt);
    ordered_json tools = kTools;
    tools[1]["function"]["parameters"] = {{"type", "object"}, {"properties", {{"x", {{"not", {{"const", 1}}}}}}}};
    const auto refused = shelf.get({}, use_of({{"tools", tools}}), Lead::none);
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().where, "tools[1].function.parameters#/properties/x/not");
    tools[1]["function"]["parameters"] = {{"type", "object"}, {"properties", {{"x", false}}}, {"required", {"x"}}};
    const auto never = shelf.get({}, use_of({{"tools", {tools[1]}}}), Lead::none);
    ASSERT_FALSE(never.has_value());
    EXPECT_TRUE(never.error().message.starts_with("tools")) << never.error().message;
}

}  // namespace
}  // namespace cadans::serve
