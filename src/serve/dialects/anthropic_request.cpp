#include <array>

#include "serve/dialects/common_fields.h"
#include "serve/dialects/field_reader.h"
#include "serve/dialects/field_rules.h"
#include "serve/dialects/generation_request.h"
#include "serve/dialects/tool_fields.h"

namespace cadans::serve {

namespace {

constexpr size_t kStopsMax = 64;

consteval const NumberRule& number_rule(std::string_view name) { return rule(kOpenAiNumbers, name); }

constexpr std::array kRefused = {
    RefusedField{"mcp_servers", neutral_if_empty},
    RefusedField{"container", neutral_if_empty},
};

/// A string, or the texts of blocks that are all text.
Result<std::string> read_text(const Json& content, const std::string& where) {
    if (content.is_string()) return content.get<std::string>();
    if (!content.is_array()) return wrong(where, "a string or a list of blocks was expected", content);
    std::string out;
    for (size_t i = 0; i < content.size(); ++i) {
        const std::string place = where + "[" + std::to_string(i) + "]";
        if (!content[i].is_object()) return wrong(place, "a block was expected", content[i]);
        FieldReader block(content[i], place);
        const std::string type = block.string("type");
        const std::string text = block.string("text");
        if (block.failed()) return block.take_error();
        if (type != "text")
            return unsupported(place + ".type: only text is read here, got \"" + type + "\"", place + ".type");
        out += (out.empty() ? "" : "\n") + text;
    }
    return out;
}

/// One message becomes one or more of the form that read_messages() takes.
class MessageReader {
  public:
    explicit MessageReader(Turns& out) : out_(out) {}

    Status read(const Json& message, const std::string& where) {
        if (!message.is_object()) return wrong(where, "an object was expected", message);
        FieldReader reader(message, where);
        role_ = reader.string("role");
        const Json* content = reader.find("content");
        if (reader.failed()) return reader.take_error();
        if (role_ != "user" && role_ != "assistant" && role_ != "system")
            return bad_input(where + ".role: user or assistant was expected, got \"" + role_ + "\"", where + ".role");
        const std::string place = where + ".content";
        if (content == nullptr) return bad_input(place + ": a string or a list of blocks is needed", place);
        text_.clear();
        thinking_.clear();
        calls_ = Json::array();
        results_ = false;
        if (content->is_string()) {
            text_ = content->get<std::string>();
        } else if (content->is_array()) {
            for (size_t i = 0; i < content->size(); ++i)
                if (Status done = block((*content)[i], place + "[" + std::to_string(i) + "]"); !done) return done;
        } else {
            return wrong(place, "a string or a list of blocks was expected", *content);
        }
        if (results_ && text_.empty()) return Ok{};
        Json made = {{"role", role_}, {"content", text_}};
        if (!thinking_.empty()) made["reasoning_content"] = thinking_;
        if (!calls_.empty()) made["tool_calls"] = calls_;
        out_.add(std::move(made), where);
        return Ok{};
    }

  private:
    Status block(const Json& given, const std::string& where) {
        if (!given.is_object()) return wrong(where, "a block was expected", given);
        FieldReader reader(given, where);
        const std::string type = reader.string("type");
        if (reader.failed()) return reader.take_error();
        if (type == "text") {
            const std::string text = reader.string("text");
            if (reader.failed()) return reader.take_error();
            text_ += (text_.empty() ? "" : "\n") + text;
        } else if (type == "thinking") {
            thinking_ += reader.string("thinking");
        } else if (type == "redacted_thinking") {
            return Ok{};  // it says nothing to this model
        } else if (type == "tool_use" && role_ == "assistant") {
            const std::string name = reader.string("name");
            const Json* input = reader.find("input");
            if (!reader.failed() && name.empty()) return bad_input(where + ".name: a name is needed", where + ".name");
            if (input != nullptr && !input->is_object())
                return wrong(where + ".input", "an object was expected", *input);
            calls_.push_back({{"id", reader.string("id")},
                              {"function", {{"name", name}, {"arguments", input ? *input : Json::object()}}}});
        } else if (type == "tool_result" && role_ == "user") {
            const Json* content = reader.find("content");
            Result<std::string> text =
                content == nullptr ? Result<std::string>(std::string()) : read_text(*content, where + ".content");
            if (!text) return std::move(text).error();
            results_ = true;
            out_.add({{"role", "tool"}, {"tool_call_id", reader.string("tool_use_id")}, {"content", *text}}, where);
        } else {
            return unsupported(where + ".type: \"" + type + "\" is not read in a message of the " + role_,
                               where + ".type");
        }
        if (reader.failed()) return reader.take_error();
        return Ok{};
    }

    Turns& out_;
    std::string role_, text_, thinking_;
    Json calls_;
    bool results_ = false;  ///< this message holds some
};

Result<Turns> read_body(FieldReader& reader) {
    Turns out;
    if (const Json* system = reader.find("system")) {
        Result<std::string> text = read_text(*system, "system");
        if (!text) return std::move(text).error();
        if (!text->empty()) out.add({{"role", "system"}, {"content", *std::move(text)}}, "system");
    }
    const Json* messages = reader.find("messages");
    if (messages == nullptr) return bad_input("messages: a list of messages is needed", "messages");
    if (!messages->is_array()) return wrong("messages", "a list of messages was expected", *messages);
    if (messages->empty()) return bad_input("messages: the list is empty", "messages");
    MessageReader turns(out);
    for (size_t i = 0; i < messages->size(); ++i)
        if (Status done = turns.read((*messages)[i], "messages[" + std::to_string(i) + "]"); !done)
            return std::move(done).error();
    return out;
}

constexpr FlatTools kTools = {
    .type = "custom", .usual_type = "custom", .others = "only tools of one's own", .schema = "input_schema"};

void read_anthropic_tools(FieldReader& reader, ToolUse& out) {
    const Json* choice = reader.find("tool_choice");
    if (!read_flat_tools(reader, kTools, choice, out)) return;
    if (choice == nullptr) return;
    if (!choice->is_object()) return reader.fail(wrong("tool_choice", "an object with a type was expected", *choice));
    FieldReader inner(*choice, "tool_choice");
    const std::string type = inner.string("type"), name = inner.string("name");
    out.parallel = !inner.boolean("disable_parallel_tool_use", false);
    if (inner.failed()) return reader.fail(inner.take_error());
    if (type == "any") {
        out.choice = ToolChoice::required;
    } else if (type == "tool") {
        choose_tool(reader, name, out);
    } else if (type == "none") {
        out = {};
    } else if (type != "auto") {
        reader.fail(bad_input("tool_choice.type: auto, any, tool or none was expected", "tool_choice.type"));
    }
}

/// `thinking` switches it on or off where the template knows how; `output_config` names its level and a form.
Json read_thinking(FieldReader& reader, TextForm& form) {
    Json out = Json::object();
    if (const Json* thinking = reader.find("thinking")) {
        if (!thinking->is_object()) {
            reader.fail(wrong("thinking", "an object with a type was expected", *thinking));
            return out;
        }
        FieldReader inner(*thinking, "thinking");
        const std::string type = inner.string("type");
        if (inner.failed()) reader.fail(inner.take_error());
        out["enable_thinking"] = type != "disabled";
    }
    const Json* config = reader.find("output_config");
    if (config == nullptr) return out;
    if (!config->is_object()) {
        reader.fail(wrong("output_config", "an object was expected", *config));
        return out;
    }
    FieldReader inner(*config, "output_config");
    if (const std::string effort = inner.string("effort"); !effort.empty()) out["reasoning_effort"] = effort;
    if (const Json* format = inner.find("format")) {
        const bool schema = format->is_object() && format->contains("type") && (*format)["type"] == "json_schema" &&
                            format->contains("schema");
        if (schema)
            form = {
                .kind = TextForm::Kind::schema, .schema = (*format)["schema"], .field = "output_config.format.schema"};
        else
            inner.fail(unsupported("output_config.format: only a json_schema is known", "output_config.format"));
    }
    if (inner.failed()) reader.fail(inner.take_error());
    return out;
}

}  // namespace

Result<GenerationRequest> parse_anthropic_messages(const Json& body, const Catalog& catalog) {
    GenerationRequest request;
    request.form = AnswerForm::messages;
    FieldReader reader(body);
    request.model = read_model(reader, catalog, false);
    if (reader.failed()) return reader.take_error();
    need_template(reader, *request.model, "messages");
    if (reader.failed()) return reader.take_error();
    request.sampling.temperature = static_cast<float>(reader.number(number_rule("temperature")));
    request.sampling.top_p = static_cast<float>(reader.number(number_rule("top_p")));
    const double top_k = reader.number(number_rule("top_k"));
    request.sampling.top_k = top_k < 0 ? 0 : static_cast<uint32_t>(top_k);
    if (const std::optional<double> most = reader.maybe_number(number_rule("max_tokens")))
        request.max_tokens = static_cast<uint64_t>(*most);
    request.seed = reader.seed("seed");
    request.stop = reader.strings("stop_sequences", kStopsMax);
    request.stream = reader.boolean("stream", false);
    read_asker(reader, request);
    if (const Json* metadata = reader.find("metadata"); metadata != nullptr && metadata->is_object()) {
        FieldReader inner(*metadata, "metadata");
        request.user = read_user(inner, "user_id", request.user);
        if (inner.failed()) return inner.take_error();
    }
    refuse(reader, kRefused);
    read_anthropic_tools(reader, request.tools);
    Json variables = read_thinking(reader, request.text_form);
    if (reader.failed()) return reader.take_error();
    if (Status done = take_turns(read_body(reader), std::move(variables), request); !done) return done.error();
    return request;
}

}  // namespace cadans::serve
