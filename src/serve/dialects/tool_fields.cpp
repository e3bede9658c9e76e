#include "serve/dialects/tool_fields.h"

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "base/random.h"
#include "serve/dialects/common_fields.h"

namespace cadans::serve {

namespace {

constexpr size_t kToolsMax = 512;
constexpr size_t kNameMax = 128;
constexpr size_t kShortId = 9;  // Mistral's templates take no other

bool is_name(const std::string& name) {
    return !name.empty() && name.size() <= kNameMax && std::ranges::all_of(name, [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
               c == '.';
    });
}

/// Of a schema's `type`: whether what it describes may be an object. What is no type at all is the schema's error.
bool may_be_object(const Json& type) {
    if (type.is_array()) return std::ranges::find(type, Json("object")) != type.end();
    return !type.is_string() || type == "object";
}

/// Arguments are an object, whatever else the schema allows. One of no parameters is empty but for the names that it
/// requires, whose values may be any.
Json object_schema(const Json* given) {
    if (given == nullptr || given->empty())
        return {{"type", "object"}, {"properties", Json::object()}, {"additionalProperties", false}};
    Json out = *given;
    // Draft 7 reads nothing beside a $ref, so that the type would not count there.
    const bool draft7 = out.contains("$schema") && out["$schema"].is_string() &&
                        out["$schema"].get_ref<const std::string&>().find("draft-07") != std::string::npos;
    if (draft7 && out.contains("$ref")) {
        Json reference = {{"$ref", std::move(out["$ref"])}};
        out.erase("$ref");
        if (!out.contains("allOf")) out["allOf"] = Json::array();
        if (out["allOf"].is_array()) out["allOf"].push_back(std::move(reference));
    }
    if (!out.contains("type") || out["type"].is_array()) out["type"] = "object";
    const bool bare = out["type"] == "object" && (!out.contains("properties") || out["properties"].empty());
    const bool says_more = std::ranges::any_of(out.items(), [](const auto& item) {
        return item.key() != "type" && item.key() != "properties" && item.key() != "required" &&
               item.key() != "title" && item.key() != "description" && item.key() != "$schema";
    });
    if (!bare || says_more) return out;
    const bool readable = !out.contains("properties") || out["properties"].is_object();
    const Json required = out.contains("required") ? out["required"] : Json();
    if (readable && required.is_array())
        for (const Json& name : required)
            if (name.is_string()) out["properties"][name.get<std::string>()] = true;
    out["additionalProperties"] = false;
    return out;
}

void read_tool(FieldReader& reader, const Json& given, const std::string& where, ToolUse& out) {
    if (!given.is_object())
        return reader.fail(bad_input(where + ": an object was expected, got " + describe(given), where));
    FieldReader outer(given, where);
    const std::string type = outer.string("type", "function");
    const Json* function = outer.find("function");
    if (outer.failed()) return reader.fail(outer.take_error());
    if (type != "function")
        return reader.fail(
            unsupported(where + ".type: only functions can be called, got \"" + type + "\"", where + ".type"));
    if (function == nullptr || !function->is_object())
        return reader.fail(bad_input(where + ".function: an object with a name is needed", where + ".function"));
    FieldReader inner(*function, where + ".function");
    const std::string name = inner.string("name");
    inner.string("description");
    if (inner.failed()) return reader.fail(inner.take_error());
    add_tool(reader, name, inner.find("parameters"), where + ".function.name", where + ".function.parameters", out);
}

void read_choice(FieldReader& reader, const Json& choice, ToolUse& out) {
    const std::string where = reader.at("tool_choice");
    if (choice == "none") {
        out.choice = ToolChoice::none;
    } else if (choice == "auto") {
        out.choice = ToolChoice::automatic;
    } else if (choice == "required" || choice == "any") {
        out.choice = ToolChoice::required;
    } else if (choice.is_object()) {
        FieldReader inner(choice, where);
        const std::string type = inner.string("type");
        const Json* function = inner.find("function");
        if (inner.failed()) return reader.fail(inner.take_error());
        if (type != "function" || function == nullptr || !function->is_object())
            return reader.fail(unsupported(where + ": only a function can be chosen by name", where));
        FieldReader named(*function, where + ".function");
        const std::string name = named.string("name");
        if (named.failed()) return reader.fail(named.take_error());
        choose_tool(reader, name, out);
    } else {
        reader.fail(bad_input(where + ": \"none\", \"auto\", \"required\" or a function was expected", where));
    }
}

bool is_short_id(const std::string& id) {
    return id.size() == kShortId && std::ranges::all_of(id, [](char c) {
               return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
           });
}

/// The same id always becomes the same one.
std::string short_id(const std::string& id) {
    if (is_short_id(id)) return id;
    constexpr char kDigits[] = "0123456789abcdefghijklmnopqrstuvwxyz";
    uint64_t hash = 0;
    for (const char c : id) hash = mix64(hash ^ static_cast<unsigned char>(c));
    std::string out;
    for (size_t i = 0; i < kShortId; i++, hash /= 36) out += kDigits[hash % 36];
    return out;
}

std::string text_of(const Json& content) {
    if (content.is_string()) return content.get<std::string>();
    std::string out;
    if (content.is_array())
        for (const Json& part : content) out += part.value("text", "");
    return out;
}

Json content_of(std::string text, bool parts) {
    if (!parts) return text;
    return Json::array({Json{{"type", "text"}, {"text", std::move(text)}}});
}

/// Calls that have no result yet, in order. Each is found and taken in constant time, over all of them.
class OpenCalls {
  public:
    struct Call {
        std::string id, name;
        bool answered = false;
    };

    void add(std::string id, std::string name) {
        by_id_[id].calls.push_back(calls_.size());
        by_name_[name].calls.push_back(calls_.size());
        calls_.push_back({std::move(id), std::move(name)});
    }

    /// The first of this id. Null: there is none.
    const Call* take(const std::string& id) { return take_of(by_id_, id); }

    /// The first of this name, or else the first.
    const Call* take_named(const std::string& name) {
        if (const Call* call = take_of(by_name_, name)) return call;
        while (first_ < calls_.size() && calls_[first_].answered) first_++;
        return first_ < calls_.size() ? answer(first_) : nullptr;
    }

  private:
    struct Waiting {
        std::vector<size_t> calls;
        size_t begin = 0;  ///< all before it are answered
    };
    using Index = std::unordered_map<std::string, Waiting>;

    const Call* answer(size_t i) {
        calls_[i].answered = true;
        return &calls_[i];
    }

    const Call* take_of(Index& index, const std::string& key) {
        const auto found = index.find(key);
        if (found == index.end()) return nullptr;
        Waiting& waiting = found->second;
        while (waiting.begin < waiting.calls.size() && calls_[waiting.calls[waiting.begin]].answered) waiting.begin++;
        return waiting.begin < waiting.calls.size() ? answer(waiting.calls[waiting.begin]) : nullptr;
    }

    std::vector<Call> calls_;
    Index by_id_, by_name_;
    size_t first_ = 0;
};

std::string told(const ToolUse& use) {
    std::string out =
        "You may call functions. These are the functions, one a line, with a JSON schema of their "
        "parameters:\n<tools>\n";
    for (const Json& tool : use.offered) out += tool.dump() + "\n";
    out +=
        "</tools>\nTo call one, write only this, with a JSON object that fits its parameters:\n"
        "<tool_call>\n{\"name\": \"function\", \"arguments\": {}}\n</tool_call>\n"
        "To call several, write one such block after the other. The results come in <tool_response> blocks.";
    return out;
}

}  // namespace

void add_tool(FieldReader& reader, std::string name, const Json* parameters, const std::string& name_field,
              std::string parameters_field, ToolUse& out) {
    if (!is_name(name))
        return reader.fail(bad_input(
            name_field + ": 1 to " + std::to_string(kNameMax) + " of A-Z a-z 0-9 _ - . were expected", name_field));
    if (out.tools.size() >= kToolsMax)
        return reader.fail(
            bad_input("tools: at most " + std::to_string(kToolsMax) + " can be offered", reader.at("tools")));
    if (std::ranges::find(out.tools, name, &Tool::name) != out.tools.end())
        return reader.fail(bad_input(name_field + ": \"" + name + "\" is there already", name_field));
    if (parameters != nullptr && !parameters->is_object())
        return reader.fail(
            bad_input(parameters_field + ": a schema was expected, got " + describe(*parameters), parameters_field));
    if (parameters != nullptr && parameters->contains("type") && !may_be_object((*parameters)["type"]))
        return reader.fail(bad_input(parameters_field + ": arguments are an object, but its type is " +
                                         (*parameters)["type"].dump(-1, ' ', false, Json::error_handler_t::replace),
                                     parameters_field));
    out.tools.push_back({std::move(name), object_schema(parameters), std::move(parameters_field)});
}

void choose_tool(FieldReader& reader, const std::string& name, ToolUse& out) {
    const auto found = std::ranges::find(out.tools, name, &Tool::name);
    const std::string where = reader.at("tool_choice");
    if (found == out.tools.end())
        return reader.fail(bad_input(where + ": there is no tool \"" + name.substr(0, kNameMax) + "\"", where));
    Tool chosen = *found;
    out.tools.assign(1, std::move(chosen));
    out.choice = ToolChoice::required;
}

void refuse_choice_of_nothing(FieldReader& reader, const Json* choice) {
    if (choice == nullptr) return;
    const Json type = choice->is_object() && choice->contains("type") ? (*choice)["type"] : *choice;
    if (type != "none" && type != "auto" && type != "")
        reader.fail(bad_input("tool_choice: there are no tools to choose from", reader.at("tool_choice")));
}

void read_tools(FieldReader& reader, ToolUse& out) {
    const Json* tools = reader.find("tools");
    const Json* choice = reader.find("tool_choice");
    out.parallel = reader.boolean("parallel_tool_calls", true);
    if (tools == nullptr || (tools->is_array() && tools->empty())) return refuse_choice_of_nothing(reader, choice);
    const std::string where = reader.at("tools");
    if (!tools->is_array())
        return reader.fail(bad_input(where + ": a list of tools was expected, got " + describe(*tools), where));
    for (size_t i = 0; i < tools->size() && !reader.failed(); ++i)
        read_tool(reader, (*tools)[i], where + "[" + std::to_string(i) + "]", out);
    if (reader.failed()) return;
    out.choice = ToolChoice::automatic;
    out.offered = *tools;
    for (Json& tool : out.offered) tool["type"] = "function";
    if (choice != nullptr && *choice != "") read_choice(reader, *choice, out);
    if (out.choice == ToolChoice::none) out = {};
}

bool read_flat_tools(FieldReader& reader, const FlatTools& spelling, const Json* choice, ToolUse& out) {
    const Json* tools = reader.find("tools");
    const auto fail = [&](Error error) {
        reader.fail(std::move(error));
        return false;
    };
    if (tools == nullptr || (tools->is_array() && tools->empty())) {
        refuse_choice_of_nothing(reader, choice);
        return false;
    }
    if (!tools->is_array()) return fail(wrong("tools", "a list of tools was expected", *tools));
    out.offered = Json::array();
    for (size_t i = 0; i < tools->size(); ++i) {
        const std::string where = "tools[" + std::to_string(i) + "]";
        if (!(*tools)[i].is_object()) return fail(wrong(where, "an object was expected", (*tools)[i]));
        FieldReader tool((*tools)[i], where);
        const std::string type = tool.string("type", spelling.usual_type), name = tool.string("name");
        const std::string description = tool.string("description");
        const Json* schema = tool.find(spelling.schema);
        if (tool.failed()) return fail(tool.take_error());
        if (type != spelling.type)
            return fail(unsupported(where + ".type: " + spelling.others + " can be called, got \"" + type + "\"",
                                    where + ".type"));
        add_tool(reader, name, schema, where + ".name", where + "." + spelling.schema, out);
        if (reader.failed()) return false;
        Json function = {{"name", name}};
        if (!description.empty()) function["description"] = description;
        function["parameters"] = schema == nullptr ? out.tools.back().parameters : *schema;
        out.offered.push_back({{"type", "function"}, {"function", std::move(function)}});
    }
    out.choice = ToolChoice::automatic;
    return true;
}

Result<Json> read_tool_calls(const Json& calls, const std::string& where) {
    if (!calls.is_array()) return bad_input(where + ": a list of calls was expected, got " + describe(calls), where);
    Json out = Json::array();
    for (size_t i = 0; i < calls.size(); ++i) {
        const std::string place = where + "[" + std::to_string(i) + "]";
        if (!calls[i].is_object())
            return bad_input(place + ": an object was expected, got " + describe(calls[i]), place);
        FieldReader outer(calls[i], place);
        const std::string id = outer.string("id");
        const Json* function = outer.find("function");
        if (outer.failed()) return outer.take_error();
        if (function == nullptr || !function->is_object())
            return bad_input(place + ".function: an object with name and arguments is needed", place + ".function");
        FieldReader inner(*function, place + ".function");
        const std::string name = inner.string("name");
        if (inner.failed()) return inner.take_error();
        if (name.empty()) return bad_input(place + ".function.name: a name is needed", place + ".function.name");
        Json arguments = Json::object();
        if (const Json* given = inner.find("arguments")) {
            arguments = *given;
            // As OpenAI's clients send it: JSON in a string. What is none is left to the template as it is.
            if (given->is_string()) {
                Json parsed = Json::parse(given->get_ref<const std::string&>(), nullptr, false);
                if (parsed.is_object()) arguments = std::move(parsed);
                if (given->get_ref<const std::string&>().empty()) arguments = Json::object();
            }
        }
        Json call = {{"id", id}, {"type", "function"}, {"function", {{"name", name}, {"arguments", arguments}}}};
        out.push_back(std::move(call));
    }
    return out;
}

namespace {

/// With channels a message has one call, and its result comes before the next. Their templates also call thinking by
/// another name, and take none beside words in front of a call.
void part_calls(Json& messages) {
    Json out = Json::array();
    for (size_t i = 0; i < messages.size(); ++i) {
        Json message = std::move(messages[i]);
        if (message.contains("reasoning_content")) message["thinking"] = message["reasoning_content"];
        if (!message.contains("tool_calls") || message["tool_calls"].empty()) {
            out.push_back(std::move(message));
            continue;
        }
        if (!text_of(message["content"]).empty()) message.erase("thinking");
        Json calls = std::move(message["tool_calls"]);
        const size_t first = i + 1;
        std::unordered_map<std::string, size_t> results;  // of this message, by the call's id
        while (i + 1 < messages.size() && messages[i + 1]["role"] == "tool") {
            ++i;
            results.try_emplace(messages[i].value("tool_call_id", ""), i);
        }
        std::vector<bool> taken(i + 1 - first);
        for (Json& call : calls) {
            const auto result = results.find(call["id"].get<std::string>());
            message["tool_calls"] = Json::array({std::move(call)});
            out.push_back(message);
            message["content"] = message["content"].is_array() ? Json::array() : Json("");
            message.erase("thinking");
            if (result == results.end() || taken[result->second - first]) continue;
            taken[result->second - first] = true;
            out.push_back(std::move(messages[result->second]));
        }
        for (size_t k = 0; k < taken.size(); ++k)
            if (!taken[k]) out.push_back(std::move(messages[first + k]));
    }
    messages = std::move(out);
}

}  // namespace

void finish_tool_messages(Json& messages, CallStyle style) {
    const bool short_ids = style == CallStyle::listed || style == CallStyle::named;
    OpenCalls asked;
    uint64_t count = 0;
    for (Json& message : messages) {
        if (message.contains("tool_calls"))
            for (Json& call : message["tool_calls"]) {
                std::string id = call["id"].get<std::string>();
                if (id.empty()) id = "unnamed_" + std::to_string(count);  // Ollama's calls have none
                count++;
                asked.add(id, call["function"]["name"].get<std::string>());
                call["id"] = short_ids ? short_id(id) : id;
            }
        if (message["role"] != "tool") continue;
        // By id; one without answers the first call of that name, or the first.
        const std::string id = message.value("tool_call_id", ""), name = message.value("name", "");
        const OpenCalls::Call* call = id.empty() ? asked.take_named(name) : asked.take(id);
        if (call == nullptr) continue;
        if (name.empty()) message["name"] = call->name;
        message["tool_call_id"] = short_ids ? short_id(call->id) : call->id;
    }
    if (style == CallStyle::channel) part_calls(messages);
}

void write_tools_as_text(Json& messages, const ToolUse& use, bool parts) {
    Json out = Json::array();
    if (!use.offered.is_null()) {
        std::string system = told(use);
        const bool has_system = !messages.empty() && messages.front()["role"] == "system";
        if (has_system) system = text_of(messages.front()["content"]) + "\n\n" + system;
        out.push_back({{"role", "system"}, {"content", content_of(std::move(system), parts)}});
        if (has_system) messages.erase(messages.begin());
    }
    std::string results;  // that stand together: one message
    const auto end_results = [&] {
        if (!results.empty()) out.push_back({{"role", "user"}, {"content", content_of(std::move(results), parts)}});
        results.clear();
    };
    for (Json& message : messages) {
        if (message["role"] == "tool") {
            results += (results.empty() ? "" : "\n") + std::string("<tool_response>\n");
            results += text_of(message["content"]) + "\n</tool_response>";
            continue;
        }
        end_results();
        if (message.contains("tool_calls")) {
            std::string text = text_of(message["content"]);
            for (const Json& call : message["tool_calls"]) {
                const Json shown = {{"name", call["function"]["name"]}, {"arguments", call["function"]["arguments"]}};
                text += (text.empty() ? "" : "\n") + std::string("<tool_call>\n") + shown.dump() + "\n</tool_call>";
            }
            out.push_back({{"role", "assistant"}, {"content", content_of(std::move(text), parts)}});
        } else {
            out.push_back(std::move(message));
        }
    }
    end_results();
    messages = std::move(out);
}

}  // namespace cadans::serve
