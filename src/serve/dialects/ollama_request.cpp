#include <array>

#include "serve/dialects/common_fields.h"
#include "serve/dialects/field_reader.h"
#include "serve/dialects/field_rules.h"
#include "serve/dialects/form_fields.h"
#include "serve/dialects/generation_request.h"
#include "serve/dialects/tool_fields.h"

namespace cadans::serve {

namespace {

constexpr const char* kRaw = "use /api/generate with \"raw\": true, or ";

constexpr size_t kStopsMax = 64;

consteval const NumberRule& number_rule(std::string_view name) { return rule(kOllamaNumbers, name); }

constexpr std::array kRefused = {
    RefusedField{"images", neutral_if_empty},   RefusedField{"suffix", neutral_if_empty},
    RefusedField{"template", neutral_if_empty}, RefusedField{"context", neutral_if_empty},
    RefusedField{"logprobs", neutral_if_empty}, RefusedField{"top_logprobs", neutral_if_zero},
};

constexpr std::array kRefusedOptions = {
    RefusedField{"mirostat", neutral_if_zero},
    RefusedField{"typical_p", neutral_if_one},
    RefusedField{"tfs_z", neutral_if_one},
};

void read_options(FieldReader& reader, GenerationRequest& request) {
    static const Json kNone = Json::object();
    const Json* options = reader.find("options");
    if (options != nullptr && !options->is_object())
        return reader.fail(bad_input("options: an object was expected, got " + describe(*options), "options"));
    FieldReader inner(options == nullptr ? kNone : *options, "options");
    SamplingParams& out = request.sampling;
    out.temperature = static_cast<float>(inner.number(number_rule("temperature")));
    out.top_p = static_cast<float>(inner.number(number_rule("top_p")));
    out.min_p = static_cast<float>(inner.number(number_rule("min_p")));
    const double top_k = inner.number(number_rule("top_k"));
    out.top_k = top_k < 0 ? 0 : static_cast<uint32_t>(top_k);
    out.presence_penalty = static_cast<float>(inner.number(number_rule("presence_penalty")));
    out.frequency_penalty = static_cast<float>(inner.number(number_rule("frequency_penalty")));
    out.repeat_penalty = static_cast<float>(inner.number(number_rule("repeat_penalty")));
    out.repeat_last_n = count_or_all(inner.number(number_rule("repeat_last_n")));
    const double most = inner.number(number_rule("num_predict"));
    if (most >= 0) request.max_tokens = static_cast<uint64_t>(most);
    if (const std::optional<double> context = inner.maybe_number(number_rule("num_ctx")))
        request.context_tokens = static_cast<uint32_t>(*context);
    request.seed = inner.seed("seed");
    if (request.seed == ~uint64_t{0}) request.seed.reset();  // -1: as there, any
    request.stop = inner.strings("stop", kStopsMax);
    refuse(inner, kRefusedOptions);
    if (inner.failed()) reader.fail(inner.take_error());
}

// `think` switches thinking on or off in the template, and off also leaves it in the text.
Json read_think(FieldReader& reader) {
    Json out = Json::object();
    const Json* think = reader.find("think");
    if (think == nullptr) return out;
    if (think->is_boolean())
        out["enable_thinking"] = think->get<bool>();
    else if (think->is_string())
        out["reasoning_effort"] = *think;
    else
        reader.fail(bad_input("think: true, false or a level was expected, got " + describe(*think), "think"));
    return out;
}

void read_common(FieldReader& reader, const Catalog& catalog, GenerationRequest& request) {
    request.model = read_model(reader, catalog, true);
    if (request.model == nullptr) return;
    read_options(reader, request);
    request.stream = reader.boolean("stream", true);
    request.return_token_ids = false;
    read_ollama_format(reader, request.text_form);
    read_asker(reader, request);
    refuse(reader, kRefused);
}

}  // namespace

Result<GenerationRequest> parse_ollama_chat(const Json& body, const Catalog& catalog) {
    GenerationRequest request;
    request.form = AnswerForm::ollama_chat;
    FieldReader reader(body);
    read_common(reader, catalog, request);
    if (reader.failed()) return reader.take_error();
    const Json* messages = reader.find("messages");
    request.load_only = messages == nullptr || (messages->is_array() && messages->empty());
    if (request.load_only) return request;
    need_template(reader, *request.model, "messages", kRaw);
    if (reader.failed()) return reader.take_error();
    read_tools(reader, request.tools);
    if (reader.failed()) return reader.take_error();
    Result<Conversation> read = read_messages(*messages, *request.model, request.tools);
    if (!read) return std::move(read).error();
    Conversation conversation = *std::move(read);
    conversation.variables = read_think(reader);
    request.prompt = std::move(conversation);
    if (reader.failed()) return reader.take_error();
    return request;
}

Result<GenerationRequest> parse_ollama_generate(const Json& body, const Catalog& catalog) {
    GenerationRequest request;
    request.form = AnswerForm::ollama_generate;
    FieldReader reader(body);
    read_common(reader, catalog, request);
    if (reader.failed()) return reader.take_error();
    std::string prompt = reader.string("prompt");
    const std::string system = reader.string("system");
    constexpr std::array kChatOnly = {RefusedField{"tools", neutral_if_empty}};
    refuse(reader, kChatOnly);
    const bool raw = reader.boolean("raw", false);
    Json variables = read_think(reader);
    if (reader.failed()) return reader.take_error();
    request.load_only = prompt.empty();
    if (raw || request.model->chat_template == nullptr) {
        if (!system.empty() && raw) return bad_input("system: a raw prompt takes no system text", "system");
        if (!system.empty()) need_template(reader, *request.model, "system", kRaw);
        if (reader.failed()) return reader.take_error();
        request.split_reasoning = false;
        request.prompt = std::vector<PromptText>{std::move(prompt)};
        return request;
    }
    Json messages = Json::array();
    if (!system.empty()) messages.push_back(Json{{"role", "system"}, {"content", system}});
    messages.push_back(Json{{"role", "user"}, {"content", prompt}});
    Result<Conversation> read = read_messages(messages, *request.model);
    if (!read) return std::move(read).error();
    Conversation conversation = *std::move(read);
    conversation.variables = std::move(variables);
    request.prompt = std::move(conversation);
    return request;
}

}  // namespace cadans::serve
