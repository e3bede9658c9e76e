#include "serve/dialects/common_fields.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "serve/dialects/keep_alive.h"
#include "serve/dialects/tool_fields.h"

namespace cadans::serve {

namespace {

constexpr std::array<std::string_view, 5> kRoles = {"system", "user", "assistant", "developer", "tool"};

// The text of one `content`: a string, or its text parts joined.
Result<std::string> read_content(const Json& content, const std::string& where) {
    if (content.is_string()) return content.get<std::string>();
    if (!content.is_array()) return wrong(where, "a string or a list of text parts was expected", content);
    std::string out;
    for (size_t i = 0; i < content.size(); ++i) {
        const Json& part = content[i];
        const std::string place = where + "[" + std::to_string(i) + "]";
        if (!part.is_object()) return wrong(place, "an object with a type was expected", part);
        FieldReader reader(part, place);
        const std::string type = reader.string("type");
        const Json* text = reader.find("text");
        if (reader.failed()) return reader.take_error();
        if (type != "text" && type != "input_text" && type != "output_text")
            return unsupported(place + ".type: only text parts are read, got \"" + type + "\"", place + ".type");
        if (text == nullptr || !text->is_string())
            return wrong(place + ".text", "a string was expected", text == nullptr ? Json(nullptr) : *text);
        out += text->get_ref<const std::string&>();
    }
    return out;
}

Result<Json> read_message(const Json& message, bool content_parts, const std::string& where) {
    if (!message.is_object()) return wrong(where, "an object was expected", message);
    FieldReader reader(message, where);
    if (!reader.given("role")) return bad_input(where + ".role: a role is needed", where + ".role");
    std::string role = reader.string("role");
    const std::string name = reader.string("name");
    std::string thinking = reader.string("reasoning_content", reader.string("thinking"));
    if (reader.failed()) return reader.take_error();
    if (role == "function")
        return unsupported(where + ".role: the older \"function\" messages are not read; \"tool\" ones are",
                           where + ".role");
    if (std::find(kRoles.begin(), kRoles.end(), role) == kRoles.end())
        return bad_input(where + ".role: system, developer, user, assistant or tool was expected, got \"" + role + "\"",
                         where + ".role");
    constexpr std::array kRefused = {RefusedField{"function_call", neutral_if_empty},
                                     RefusedField{"images", neutral_if_empty}, RefusedField{"audio", neutral_if_empty},
                                     RefusedField{"prefix", neutral_if_empty}};
    refuse(reader, kRefused);
    if (reader.failed()) return reader.take_error();

    const Json* calls = reader.find("tool_calls");
    if (calls != nullptr && neutral_if_empty(*calls)) calls = nullptr;
    if (calls != nullptr && role != "assistant")
        return bad_input(where + ".tool_calls: only an assistant calls tools", where + ".tool_calls");
    const std::string answers = reader.string("tool_call_id");
    const std::string tool_name = reader.string("tool_name", name);
    if (reader.failed()) return reader.take_error();
    std::string text;
    if (const Json* content = reader.find("content")) {
        Result<std::string> read = read_content(*content, where + ".content");
        if (!read) return std::move(read).error();
        text = *std::move(read);
    } else if (role != "assistant") {
        return bad_input(where + ".content: a string or a list of text parts was expected, got null",
                         where + ".content");
    }
    Json out = Json::object();
    out["role"] = role == "developer" ? "system" : role;
    if (content_parts)
        out["content"] = Json::array({Json{{"type", "text"}, {"text", text}}});
    else
        out["content"] = text;
    if (role == "tool") {
        if (!tool_name.empty()) out["name"] = tool_name;
        if (!answers.empty()) out["tool_call_id"] = answers;
    } else if (!name.empty()) {
        out["name"] = name;
    }
    if (calls != nullptr) {
        Result<Json> read = read_tool_calls(*calls, where + ".tool_calls");
        if (!read) return std::move(read).error();
        out["tool_calls"] = *std::move(read);
    }
    if (!thinking.empty()) out["reasoning_content"] = thinking;
    return out;
}

Result<Conversation> read_placed(const Json& messages, std::vector<std::string> places, const ServedModel& model,
                                 const ToolUse& tools) {
    const bool content_parts = model.chat_template->wants_content_parts();
    Conversation out;
    out.messages = Json::array();
    for (size_t i = 0; i < messages.size(); ++i) {
        Result<Json> message = read_message(messages[i], content_parts, places[i]);
        if (!message) return std::move(message).error();
        out.messages.push_back(*std::move(message));
    }
    finish_tool_messages(out.messages, model.calls.style);
    if (model.calls.in_template)
        out.tools = tools.offered;
    else
        write_tools_as_text(out.messages, tools, content_parts);
    // Where some were parted or joined, a template's count of them says nothing to the client.
    if (out.messages.size() == messages.size()) out.places = std::move(places);
    return out;
}

}  // namespace

Error wrong(const std::string& where, std::string_view expected, const Json& got) {
    return bad_input(where + ": " + std::string(expected) + ", got " + describe(got), where);
}

bool neutral_if_empty(const Json& value) {
    if (value.is_null()) return true;
    if (value.is_boolean()) return !value.get<bool>();
    if (value.is_string()) return value.get_ref<const std::string&>().empty();
    return (value.is_array() || value.is_object()) && value.empty();
}
bool neutral_if_zero(const Json& value) {
    return neutral_if_empty(value) || (value.is_number() && value.get<double>() == 0.0);
}
bool neutral_if_one(const Json& value) {
    return neutral_if_empty(value) || (value.is_number() && value.get<double>() == 1.0);
}
bool neutral_if_true(const Json& value) { return value.is_null() || (value.is_boolean() && value.get<bool>()); }

void refuse(FieldReader& reader, std::span<const RefusedField> fields) {
    for (const RefusedField& field : fields) {
        const Json* value = reader.find(field.name);
        if (value == nullptr || field.is_neutral(*value)) continue;
        const std::string where = reader.at(field.name);
        reader.fail(unsupported(where + " would change the answer and is not supported yet", where));
    }
}

const ServedModel* read_model(FieldReader& reader, const Catalog& catalog, bool ollama_names) {
    std::string name = reader.string("model");
    if (name.empty() && ollama_names) name = reader.string("name");
    Result<const ServedModel*> found = catalog.find(name, ollama_names);
    if (found) return *found;
    reader.fail(std::move(found).error());
    return nullptr;
}

Result<TokenId> read_token_id(const Json& value, const text::Vocabulary& vocabulary, const std::string& where) {
    const std::string expected = "a token id from 0 to " + std::to_string(vocabulary.size() - 1) + " was expected";
    if (!value.is_number()) return wrong(where, expected, value);
    const double number = value.get<double>();
    if (!(number >= 0) || number != std::floor(number) || number >= vocabulary.size())
        return wrong(where, expected, value);
    const auto id = static_cast<TokenId>(number);
    if (vocabulary.is_padding(id))
        return bad_input(where + ": " + expected + ", but " + value.dump() + " is a row that only fills the table up",
                         where);
    return id;
}

Result<std::vector<TokenId>> read_token_ids(const Json& list, const text::Vocabulary& vocabulary,
                                            const std::string& where) {
    if (!list.is_array()) return wrong(where, "a list of token ids was expected", list);
    std::vector<TokenId> out;
    out.reserve(list.size());
    for (size_t i = 0; i < list.size(); ++i) {
        Result<TokenId> id = read_token_id(list[i], vocabulary, where + "[" + std::to_string(i) + "]");
        if (!id) return std::move(id).error();
        out.push_back(*id);
    }
    return out;
}

Result<Conversation> read_messages(const Json& messages, const ServedModel& model, const ToolUse& tools) {
    if (!messages.is_array()) return wrong("messages", "a list of messages was expected", messages);
    std::vector<std::string> places;
    for (size_t i = 0; i < messages.size(); ++i) places.push_back("messages[" + std::to_string(i) + "]");
    return read_placed(messages, std::move(places), model, tools);
}

void need_template(FieldReader& reader, const ModelCard& model, const char* place, const char* instead) {
    if (model.chat_template != nullptr) return;
    reader.fail(unsupported("the model \"" + model.name + "\" has no chat template: " + instead +
                                "start the server with --chat-template FILE",
                            place));
}

Status take_turns(Result<Turns> turns, Json variables, GenerationRequest& request) {
    if (!turns) return std::move(turns).error();
    Result<Conversation> read = read_placed(turns->messages, turns->places, *request.model, request.tools);
    if (!read) return std::move(read).error();
    Conversation conversation = *std::move(read);
    conversation.variables = std::move(variables);
    request.prompt = std::move(conversation);
    return Ok{};
}

namespace {

void read_keep_alive(FieldReader& reader, GenerationRequest& request) {
    const Json* field = reader.find("keep_alive");
    if (field == nullptr) return;
    if (field->is_number()) return void(request.keep_alive = keep_alive_of(field->get<double>()));
    if (!field->is_string())
        return reader.fail(wrong(reader.at("keep_alive"), "a duration or a number of seconds was expected", *field));
    Result<Nanos> read = parse_keep_alive(field->get_ref<const std::string&>());
    if (!read) return reader.fail(bad_input("keep_alive: " + read.error().message, reader.at("keep_alive")));
    request.keep_alive = *read;
}

void read_speculation(FieldReader& reader, GenerationRequest& request) {
    const Json* field = reader.find("speculate");
    if (field == nullptr) return;
    const std::string name = field->is_string() ? field->get<std::string>() : std::string();
    if (name == "auto") return void(request.speculation = Speculation::automatic);
    if (name == "off") return void(request.speculation = Speculation::off);
    if (name == "lookup") return void(request.speculation = Speculation::lookup);
    if (name == "suffix") return void(request.speculation = Speculation::suffix);
    if (name == "model") return void(request.speculation = Speculation::model);
    reader.fail(
        wrong(reader.at("speculate"), "\"auto\", \"off\", \"lookup\", \"suffix\" or \"model\" was expected", *field));
}

}  // namespace

std::string read_user(FieldReader& reader, const char* key, const std::string& fallback) {
    std::string user = reader.string(key, fallback);
    if (user.size() > kMostUserBytes)
        reader.fail(bad_input("a user's name has at most " + std::to_string(kMostUserBytes) + " bytes, this one has " +
                                  std::to_string(user.size()),
                              reader.at(key)));
    return user;
}

void read_asker(FieldReader& reader, GenerationRequest& request) {
    request.user = read_user(reader, "user", "");
    request.cache_prompt = reader.boolean("cache_prompt", true);
    read_speculation(reader, request);
    read_keep_alive(reader, request);
    const Json* priority = reader.find("priority");
    if (priority == nullptr) return;
    if (priority->is_string()) {
        const auto& name = priority->get_ref<const std::string&>();
        if (name == "interactive") return void(request.priority = Priority::interactive);
        if (name == "normal") return void(request.priority = Priority::normal);
        if (name == "background") return void(request.priority = Priority::background);
    }
    reader.fail(wrong(reader.at("priority"), "\"interactive\", \"normal\" or \"background\" was expected", *priority));
}

uint32_t count_or_all(double number) noexcept {
    return number < 0 ? std::numeric_limits<uint32_t>::max() : static_cast<uint32_t>(number);
}

}  // namespace cadans::serve
