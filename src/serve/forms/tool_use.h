// The tools that a client offers, and how a model calls them.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cadans::serve {

/// One function. Its name is of [A-Za-z0-9_.-]; its parameters' schema is an object's.
struct Tool {
    std::string name;
    nlohmann::ordered_json parameters;
    std::string field;  ///< where that schema stands in the body
};

/// Whether an answer calls tools.
enum class ToolChoice : uint8_t {
    none,       ///< it is text
    automatic,  ///< it is text, or text and then calls, or calls
    required,   ///< it is calls
};

/// What a request says of tools; with `none` there are none to call.
struct ToolUse {
    ToolChoice choice = ToolChoice::none;
    std::vector<Tool> tools = {};         ///< those that may be called
    bool parallel = true;                 ///< more than one in an answer
    nlohmann::ordered_json offered = {};  ///< all, as the client gave them: what the template shows
};

/// How a model writes a call. Each begins with a mark, which free text never holds.
enum class CallStyle : uint8_t {
    tagged,  ///< <tool_call>{"name": …, "arguments": …}</tool_call>: Hermes, Qwen, and all without a style of their own
    bare,     ///< {"name": …, "parameters": …}, perhaps behind <|python_tag|>: Llama 3
    listed,   ///< [TOOL_CALLS] [{"name": …, "arguments": …}, …]: Mistral
    named,    ///< [TOOL_CALLS]name[ARGS]{…}: newer Mistral
    channel,  ///< a message of its own, its header naming the function; one an answer: gpt-oss
    escaped,  ///< <start_function_call>call:name{key:<escape>text<escape>}<end_function_call>: FunctionGemma
    quoted,   ///< <|tool_call>call:name{key:<|"|>text<|"|>}<tool_call|>: Gemma 4
};

/// Marks of a style whose arguments are no JSON: names are bare, texts stand between two quotes as they are.
struct BareMarks {
    const char *open, *close;
    const char* quote;
    const char* result;  ///< what such a model writes behind its calls: now it waits for a result
};
const BareMarks* bare_marks(CallStyle style) noexcept;  ///< null: arguments are JSON

/// A model's way, found in its template.
struct CallFormat {
    CallStyle style = CallStyle::tagged;
    bool in_template = false;  ///< the template knows of tools; else the messages themselves tell of them
};

CallFormat call_format_of(std::string_view template_source);

/// What comes before a call, in this style.
std::string_view mark_of(CallStyle style) noexcept;
/// How the arguments' name is spelled.
std::string_view arguments_key(CallStyle style) noexcept;
/// All spellings that are control tokens in some vocabularies and that a call is made of.
std::vector<std::string> call_marks(CallStyle style);

}  // namespace cadans::serve
