#include <array>

#include "serve/dialects/common_fields.h"
#include "serve/dialects/field_reader.h"
#include "serve/dialects/field_rules.h"
#include "serve/dialects/form_fields.h"
#include "serve/dialects/generation_request.h"
#include "serve/dialects/tool_fields.h"

namespace cadans::serve {

namespace {

consteval const NumberRule& number_rule(std::string_view name) { return rule(kOpenAiNumbers, name); }

// What asks for a stored conversation, for tools that a server would run, or for a different answer than ours would be.
constexpr std::array kRefused = {
    RefusedField{"previous_response_id", neutral_if_empty}, RefusedField{"conversation", neutral_if_empty},
    RefusedField{"background", neutral_if_empty},           RefusedField{"prompt", neutral_if_empty},
    RefusedField{"top_logprobs", neutral_if_zero},          RefusedField{"max_tool_calls", neutral_if_empty},
};

/// A string, or the texts of parts.
Result<std::string> read_parts(const Json& content, const std::string& where) {
    if (content.is_string()) return content.get<std::string>();
    if (!content.is_array()) return wrong(where, "a string or a list of text parts was expected", content);
    std::string out;
    for (size_t i = 0; i < content.size(); ++i) {
        const std::string place = where + "[" + std::to_string(i) + "]";
        if (!content[i].is_object()) return wrong(place, "an object with a type was expected", content[i]);
        FieldReader part(content[i], place);
        const std::string type = part.string("type");
        out += part.string("text");
        if (part.failed()) return part.take_error();
        if (type != "input_text" && type != "output_text" && type != "text" && type != "reasoning_text" &&
            type != "summary_text")
            return unsupported(place + ".type: only text parts are read, got \"" + type + "\"", place + ".type");
    }
    return out;
}

/// Items become messages of the form that read_messages() takes: calls that stand together are one message's.
class ItemReader {
  public:
    explicit ItemReader(Turns& out) : out_(out) {}

    Status read(const Json& item, const std::string& where) {
        if (!item.is_object()) return wrong(where, "an item was expected", item);
        FieldReader reader(item, where);
        const std::string type = reader.string("type", "message");
        if (reader.failed()) return reader.take_error();
        if (type == "message") return message(reader, where);
        if (type == "function_call") return call(reader, where);
        if (type == "function_call_output") return result(reader, where);
        if (type == "reasoning") return reasoning(reader, where);
        return unsupported(where + ".type: \"" + type + "\" is not read", where + ".type");
    }

  private:
    Status message(FieldReader& reader, const std::string& where) {
        const std::string role = reader.string("role");
        const Json* content = reader.find("content");
        if (reader.failed()) return reader.take_error();
        if (role != "user" && role != "assistant" && role != "system" && role != "developer")
            return bad_input(where + ".role: user, assistant, system or developer was expected", where + ".role");
        if (content == nullptr) return bad_input(where + ".content: it is needed", where + ".content");
        Result<std::string> text = read_parts(*content, where + ".content");
        if (!text) return std::move(text).error();
        out_.add({{"role", role}, {"content", *std::move(text)}}, where);
        if (role == "assistant") take_thinking(out_.messages.back());
        return Ok{};
    }

    Status call(FieldReader& reader, const std::string& where) {
        const std::string name = reader.string("name");
        Json made = {{"id", reader.string("call_id")},
                     {"function", {{"name", name}, {"arguments", reader.string("arguments")}}}};
        if (reader.failed()) return reader.take_error();
        if (name.empty()) return bad_input(where + ".name: a name is needed", where + ".name");
        Json& messages = out_.messages;
        if (messages.empty() || messages.back()["role"] != "assistant") {
            out_.add({{"role", "assistant"}, {"content", ""}}, where);
            take_thinking(messages.back());
        }
        messages.back()["tool_calls"].push_back(std::move(made));
        return Ok{};
    }

    Status result(FieldReader& reader, const std::string& where) {
        const std::string id = reader.string("call_id");
        const Json* output = reader.find("output");
        if (reader.failed()) return reader.take_error();
        if (output == nullptr) return bad_input(where + ".output: it is needed", where + ".output");
        Result<std::string> text = read_parts(*output, where + ".output");
        if (!text) return std::move(text).error();
        out_.add({{"role", "tool"}, {"tool_call_id", id}, {"content", *std::move(text)}}, where);
        return Ok{};
    }

    Status reasoning(FieldReader& reader, const std::string& where) {
        const Json* content = reader.find("content");
        if (content == nullptr) return Ok{};  // a summary, or thoughts that only their maker can read
        Result<std::string> text = read_parts(*content, where + ".content");
        if (!text) return std::move(text).error();
        thinking_ += *text;
        return Ok{};
    }

    void take_thinking(Json& message) {
        if (!thinking_.empty()) message["reasoning_content"] = std::move(thinking_);
        thinking_.clear();
    }

    Turns& out_;
    std::string thinking_;  // of the message to come
};

Result<Turns> read_input(FieldReader& reader) {
    Turns out;
    const std::string instructions = reader.string("instructions");
    if (reader.failed()) return reader.take_error();
    if (!instructions.empty()) out.add({{"role", "system"}, {"content", instructions}}, "instructions");
    const Json* input = reader.find("input");
    if (input == nullptr) return bad_input("input: a string or a list of items is needed", "input");
    if (input->is_string()) {
        out.add({{"role", "user"}, {"content", *input}}, "input");
        return out;
    }
    if (!input->is_array()) return wrong("input", "a string or a list of items was expected", *input);
    if (input->empty()) return bad_input("input: the list is empty", "input");
    ItemReader items(out);
    for (size_t i = 0; i < input->size(); ++i)
        if (Status done = items.read((*input)[i], "input[" + std::to_string(i) + "]"); !done)
            return std::move(done).error();
    return out;
}

constexpr FlatTools kTools = {.type = "function", .usual_type = "", .others = "only functions", .schema = "parameters"};

void read_response_tools(FieldReader& reader, ToolUse& out) {
    const Json* choice = reader.find("tool_choice");
    out.parallel = reader.boolean("parallel_tool_calls", true);
    if (!read_flat_tools(reader, kTools, choice, out)) return;
    if (choice == nullptr || *choice == "auto") return;
    if (*choice == "none") {
        out = {};
    } else if (*choice == "required") {
        out.choice = ToolChoice::required;
    } else if (choice->is_object() && choice->value("type", Json()) == "function") {
        FieldReader inner(*choice, "tool_choice");
        const std::string name = inner.string("name");
        if (inner.failed()) return reader.fail(inner.take_error());
        choose_tool(reader, name, out);
    } else {
        reader.fail(
            unsupported("tool_choice: \"none\", \"auto\", \"required\" or a function was expected", "tool_choice"));
    }
}

/// `text.format` has the parts of `response_format` side by side.
void read_text(FieldReader& reader, TextForm& out) {
    const Json* text = reader.find("text");
    if (text == nullptr) return;
    if (!text->is_object()) return reader.fail(wrong("text", "an object was expected", *text));
    const auto format = text->find("format");
    if (format == text->end() || format->is_null()) return;
    if (!format->is_object()) return reader.fail(wrong("text.format", "an object with a type was expected", *format));
    FieldReader inner(*format, "text.format");
    const std::string type = inner.string("type", "text");
    const Json* schema = inner.find("schema");
    if (inner.failed()) return reader.fail(inner.take_error());
    if (type == "json_object") {
        out = {.kind = TextForm::Kind::json_object, .field = "text.format"};
    } else if (type == "json_schema" && schema != nullptr) {
        out = {.kind = TextForm::Kind::schema, .schema = *schema, .field = "text.format.schema"};
    } else if (type != "text") {
        reader.fail(
            unsupported("text.format: text, json_object or json_schema with its schema was expected", "text.format"));
    }
}

Json read_reasoning(FieldReader& reader) {
    Json out = Json::object();
    const Json* reasoning = reader.find("reasoning");
    if (reasoning == nullptr) return out;
    if (!reasoning->is_object()) {
        reader.fail(wrong("reasoning", "an object was expected", *reasoning));
        return out;
    }
    FieldReader inner(*reasoning, "reasoning");
    const std::string effort = inner.string("effort");
    if (inner.failed()) reader.fail(inner.take_error());
    if (effort == "none") out["enable_thinking"] = false;
    if (!effort.empty() && effort != "none") out["reasoning_effort"] = effort;
    return out;
}

/// What a response tells of its request, as members of an object.
std::string echo_of(const Json& body) {
    const auto or_else = [&](const char* name, Json fallback) {
        const auto found = body.find(name);
        return found == body.end() || found->is_null() ? fallback : *found;
    };
    const Json echo = {{"instructions", or_else("instructions", nullptr)},
                       {"max_output_tokens", or_else("max_output_tokens", nullptr)},
                       {"parallel_tool_calls", or_else("parallel_tool_calls", true)},
                       {"previous_response_id", nullptr},
                       {"reasoning", or_else("reasoning", {{"effort", nullptr}, {"summary", nullptr}})},
                       {"store", false},
                       {"temperature", or_else("temperature", 1.0)},
                       {"text", or_else("text", {{"format", {{"type", "text"}}}})},
                       {"tool_choice", or_else("tool_choice", "auto")},
                       {"tools", or_else("tools", Json::array())},
                       {"top_p", or_else("top_p", 1.0)},
                       {"truncation", "disabled"},
                       {"metadata", or_else("metadata", Json::object())}};
    const std::string text = echo.dump();
    return text.substr(1, text.size() - 2);
}

}  // namespace

Result<GenerationRequest> parse_responses(const Json& body, const Catalog& catalog) {
    GenerationRequest request;
    request.form = AnswerForm::responses;
    FieldReader reader(body);
    request.model = read_model(reader, catalog, false);
    if (reader.failed()) return reader.take_error();
    need_template(reader, *request.model, "input");
    if (reader.failed()) return reader.take_error();
    request.sampling.temperature = static_cast<float>(reader.number(number_rule("temperature")));
    request.sampling.top_p = static_cast<float>(reader.number(number_rule("top_p")));
    if (const std::optional<double> most = reader.maybe_number(number_rule("max_output_tokens")))
        request.max_tokens = static_cast<uint64_t>(*most);
    request.seed = reader.seed("seed");
    request.stream = reader.boolean("stream", false);
    read_asker(reader, request);
    refuse(reader, kRefused);
    read_response_tools(reader, request.tools);
    read_text(reader, request.text_form);
    Json variables = read_reasoning(reader);
    if (reader.failed()) return reader.take_error();
    if (Status done = take_turns(read_input(reader), std::move(variables), request); !done) return done.error();
    request.echoed = echo_of(body);
    return request;
}

}  // namespace cadans::serve
