#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

#include "serve/dialects/common_fields.h"
#include "serve/dialects/field_reader.h"
#include "serve/dialects/field_rules.h"
#include "serve/dialects/form_fields.h"
#include "serve/dialects/generation_request.h"
#include "serve/dialects/tool_fields.h"

namespace cadans::serve {

namespace {

constexpr size_t kStopsMax = 16;

bool neutral_function_call(const Json& value) { return neutral_if_empty(value) || value == "none" || value == "auto"; }
bool neutral_modalities(const Json& value) {
    return neutral_if_empty(value) || (value.is_array() && value.size() == 1 && value[0] == "text");
}

// What asks for a different answer than ours would be.
constexpr std::array kRefused = {
    RefusedField{"functions", neutral_if_empty},
    RefusedField{"function_call", neutral_function_call},
    RefusedField{"modalities", neutral_modalities},
    RefusedField{"audio", neutral_if_empty},
    RefusedField{"web_search_options", neutral_if_empty},
    RefusedField{"suffix", neutral_if_empty},
    RefusedField{"image_data", neutral_if_empty},
    RefusedField{"prompt_embeds", neutral_if_empty},
    RefusedField{"prompt_logprobs", neutral_if_empty},
    RefusedField{"chat_template", neutral_if_empty},
    RefusedField{"continue_final_message", neutral_if_empty},
    RefusedField{"use_beam_search", neutral_if_empty},
    RefusedField{"truncate_prompt_tokens", neutral_if_empty},
    RefusedField{"n_discard", neutral_if_zero},
    RefusedField{"min_tokens", neutral_if_zero},
    RefusedField{"n_probs", neutral_if_zero},
    RefusedField{"typical_p", neutral_if_one},
    RefusedField{"mirostat", neutral_if_zero},
    RefusedField{"dynatemp_range", neutral_if_zero},
    RefusedField{"dry_multiplier", neutral_if_zero},
    RefusedField{"xtc_probability", neutral_if_zero},
    RefusedField{"bad_words", neutral_if_empty},
    RefusedField{"samplers", neutral_if_empty},
    RefusedField{"lora", neutral_if_empty},
    RefusedField{"include_stop_str_in_output", neutral_if_empty},
    RefusedField{"skip_special_tokens", neutral_if_true},
};

consteval const NumberRule& number_rule(std::string_view name) { return rule(kOpenAiNumbers, name); }

void read_logit_bias(FieldReader& reader, const text::Vocabulary& vocabulary, SamplingParams& out) {
    const Json* map = reader.find("logit_bias");
    if (map == nullptr) return;
    if (!map->is_object())
        return reader.fail(
            bad_input("logit_bias: an object of token id to bias was expected, got " + describe(*map), "logit_bias"));
    for (const auto& [key, value] : map->get_ref<const Json::object_t&>()) {
        const std::string where = "logit_bias." + key;
        uint64_t id = 0;
        const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
        const bool whole = error == std::errc{} && end == key.data() + key.size() && !key.empty();
        const auto token = static_cast<TokenId>(id);
        if (!whole || id >= vocabulary.size() || vocabulary.is_padding(token))
            return reader.fail(bad_input(
                where + ": a token id from 0 to " + std::to_string(vocabulary.size() - 1) + " was expected as key",
                where));
        const double bias = value.is_number() ? value.get<double>() : std::numeric_limits<double>::quiet_NaN();
        if (!(bias >= -100 && bias <= 100))
            return reader.fail(
                bad_input(where + ": a number from -100 to 100 was expected, got " + describe(value), where));
        out.logit_bias.push_back({token, static_cast<float>(bias)});
    }
    std::sort(out.logit_bias.begin(), out.logit_bias.end(),
              [](const LogitBias& a, const LogitBias& b) { return a.token < b.token; });
    for (size_t i = 1; i < out.logit_bias.size(); ++i)
        if (out.logit_bias[i].token == out.logit_bias[i - 1].token)  // "1" and "01"
            return reader.fail(
                bad_input("logit_bias: token " + std::to_string(index(out.logit_bias[i].token)) + " is named twice",
                          "logit_bias"));
}

void read_sampling(FieldReader& reader, SamplingParams& out) {
    out.temperature = static_cast<float>(reader.number(number_rule("temperature")));
    out.top_p = static_cast<float>(reader.number(number_rule("top_p")));
    out.min_p = static_cast<float>(reader.number(number_rule("min_p")));
    const double top_k = reader.number(number_rule("top_k"));
    out.top_k = top_k < 0 ? 0 : static_cast<uint32_t>(top_k);
    out.presence_penalty = static_cast<float>(reader.number(number_rule("presence_penalty")));
    out.frequency_penalty = static_cast<float>(reader.number(number_rule("frequency_penalty")));
    const double repetition = reader.number(number_rule("repetition_penalty"));
    const double repeat = reader.number(number_rule("repeat_penalty"));
    out.repeat_penalty = static_cast<float>(reader.given("repeat_penalty") ? repeat : repetition);
    out.repeat_last_n = count_or_all(reader.number(number_rule("repeat_last_n")));
}

void read_stream_options(FieldReader& reader, GenerationRequest& request) {
    const Json* options = reader.find("stream_options");
    if (options == nullptr) return;
    if (!options->is_object())
        return reader.fail(
            bad_input("stream_options: an object was expected, got " + describe(*options), "stream_options"));
    FieldReader inner(*options, "stream_options");
    request.include_usage = inner.boolean("include_usage", false);
    request.include_progress = inner.boolean("include_progress", false);
    if (inner.failed()) reader.fail(inner.take_error());
}

// Everything that chat and completions read alike.
void read_common(FieldReader& reader, const Catalog& catalog, GenerationRequest& request) {
    request.model = read_model(reader, catalog, false);
    if (request.model == nullptr) return;
    const text::Vocabulary& vocabulary = request.model->tokenizer->vocabulary();
    read_sampling(reader, request.sampling);
    read_logit_bias(reader, vocabulary, request.sampling);
    request.seed = reader.seed("seed");
    request.choices = static_cast<uint32_t>(reader.number(number_rule("n")));
    request.stop = reader.strings("stop", kStopsMax);
    if (const Json* ids = reader.find("stop_token_ids")) {
        Result<std::vector<TokenId>> read = read_token_ids(*ids, vocabulary, "stop_token_ids");
        if (read)
            request.stop_tokens = *std::move(read);
        else
            reader.fail(std::move(read).error());
    }
    request.ignore_eos = reader.boolean("ignore_eos", false);
    request.return_token_ids = reader.boolean("return_token_ids", false);
    read_text_form(reader, request.text_form);
    request.stream = reader.boolean("stream", false);
    read_stream_options(reader, request);
    read_asker(reader, request);
    refuse(reader, kRefused);
}

void read_best_of(FieldReader& reader, const GenerationRequest& request) {
    const std::optional<double> best_of = reader.maybe_number(number_rule("best_of"));
    if (best_of && *best_of > 1 && *best_of < request.choices)
        reader.fail(bad_input("best_of: must be at least n", "best_of"));
    if (best_of && *best_of > request.choices)
        reader.fail(unsupported("best_of: more tries than answers are not supported yet", "best_of"));
}

// Prompts may be empty strings: a model with a begin token can answer those.
std::vector<PromptText> read_texts(FieldReader& reader, const Json& list) {
    std::vector<PromptText> out;
    for (size_t i = 0; i < list.size(); ++i) {
        if (!list[i].is_string()) {
            const std::string where = "prompt[" + std::to_string(i) + "]";
            reader.fail(bad_input(where + ": a string was expected as in prompt[0], got " + describe(list[i]), where));
            return {};
        }
        out.push_back(list[i].get<std::string>());
    }
    return out;
}

void read_prompt(FieldReader& reader, GenerationRequest& request) {
    const Json* prompt = reader.find("prompt");
    constexpr const char* kForms = "a string, a list of strings, a list of token ids or a list of those was expected";
    if (prompt == nullptr) return reader.fail(bad_input(std::string("prompt: ") + kForms + ", got nothing", "prompt"));
    if (prompt->is_string()) {
        request.prompt = std::vector<PromptText>{prompt->get<std::string>()};
        return;
    }
    if (!prompt->is_array())
        return reader.fail(bad_input(std::string("prompt: ") + kForms + ", got " + describe(*prompt), "prompt"));
    if (prompt->empty()) return reader.fail(bad_input("prompt: the list is empty", "prompt"));
    if (prompt->front().is_string()) {
        request.prompt = read_texts(reader, *prompt);
        return;
    }
    const text::Vocabulary& vocabulary = request.model->tokenizer->vocabulary();
    std::vector<PromptIds> lists;
    if (prompt->front().is_array()) {
        for (size_t i = 0; i < prompt->size(); ++i) {
            Result<PromptIds> ids = read_token_ids((*prompt)[i], vocabulary, "prompt[" + std::to_string(i) + "]");
            if (!ids) return reader.fail(std::move(ids).error());
            lists.push_back(*std::move(ids));
        }
    } else {
        Result<PromptIds> ids = read_token_ids(*prompt, vocabulary, "prompt");
        if (!ids) return reader.fail(std::move(ids).error());
        lists.push_back(*std::move(ids));
    }
    request.prompt = std::move(lists);
}

// Only `enable_thinking` and `reasoning_effort` reach the template: names that clients choose could stand for the
// template's own.
Json read_template_variables(FieldReader& reader) {
    Json out = Json::object();
    if (const std::string effort = reader.string("reasoning_effort"); !effort.empty()) out["reasoning_effort"] = effort;
    const Json* arguments = reader.find("chat_template_kwargs");
    if (arguments == nullptr) return out;
    if (!arguments->is_object()) {
        reader.fail(bad_input("chat_template_kwargs: an object was expected, got " + describe(*arguments),
                              "chat_template_kwargs"));
        return out;
    }
    FieldReader inner(*arguments, "chat_template_kwargs");
    for (const auto& [key, value] : arguments->get_ref<const Json::object_t&>())
        if (key != "enable_thinking" && key != "reasoning_effort")
            inner.fail(unsupported("chat_template_kwargs." + key + " is not supported", "chat_template_kwargs." + key));
    if (const std::optional<bool> thinking = inner.maybe_boolean("enable_thinking")) out["enable_thinking"] = *thinking;
    if (const std::string effort = inner.string("reasoning_effort"); !effort.empty()) out["reasoning_effort"] = effort;
    if (inner.failed()) reader.fail(inner.take_error());
    return out;
}

void read_chat_logprobs(FieldReader& reader, GenerationRequest& request) {
    const bool wanted = reader.boolean("logprobs", false);
    const auto top = static_cast<uint8_t>(reader.number(number_rule("top_logprobs")));
    if (top > 0 && !wanted) reader.fail(bad_input("top_logprobs: logprobs must be true with it", "top_logprobs"));
    request.logprobs = wanted;
    request.sampling.logprobs = wanted;
    request.sampling.top_logprobs = wanted ? top : uint8_t{0};
}

void read_conversation(FieldReader& reader, GenerationRequest& request) {
    const Json* messages = reader.find("messages");
    if (messages == nullptr) return reader.fail(bad_input("messages: a list of messages is needed", "messages"));
    need_template(reader, *request.model, "messages", "use /v1/completions, or ");
    if (reader.failed()) return;
    read_tools(reader, request.tools);
    if (reader.failed()) return;
    Result<Conversation> read = read_messages(*messages, *request.model, request.tools);
    if (!read) return reader.fail(std::move(read).error());
    if (read->messages.empty()) return reader.fail(bad_input("messages: the list is empty", "messages"));
    Conversation conversation = *std::move(read);
    conversation.variables = read_template_variables(reader);
    conversation.add_generation_prompt = reader.boolean("add_generation_prompt", true);
    request.prompt = std::move(conversation);
}

}  // namespace

Result<GenerationRequest> parse_chat_request(const Json& body, const Catalog& catalog) {
    GenerationRequest request;
    request.form = AnswerForm::chat;
    FieldReader reader(body);
    read_common(reader, catalog, request);
    if (reader.failed()) return reader.take_error();
    read_best_of(reader, request);
    read_conversation(reader, request);
    read_chat_logprobs(reader, request);
    const std::optional<double> max_tokens = reader.maybe_number(number_rule("max_tokens"));
    const std::optional<double> completion = reader.maybe_number(number_rule("max_completion_tokens"));
    if (const std::optional<double> most = completion ? completion : max_tokens)
        request.max_tokens = static_cast<uint64_t>(*most);
    if (reader.boolean("echo", false)) reader.fail(unsupported("echo is for /v1/completions", "echo"));
    request.split_reasoning = reader.string("reasoning_format", "auto") != "none";
    if (reader.failed()) return reader.take_error();
    return request;
}

Result<GenerationRequest> parse_completion_request(const Json& body, const Catalog& catalog) {
    GenerationRequest request;
    request.form = AnswerForm::completion;
    request.split_reasoning = false;
    FieldReader reader(body);
    read_common(reader, catalog, request);
    if (reader.failed()) return reader.take_error();
    read_best_of(reader, request);
    constexpr std::array kChatOnly = {RefusedField{"tools", neutral_if_empty},
                                      RefusedField{"tool_choice", neutral_function_call}};
    refuse(reader, kChatOnly);
    read_prompt(reader, request);
    request.add_special = reader.boolean("add_special_tokens", true);
    request.parse_special = reader.boolean("parse_special", true);
    request.echo = reader.boolean("echo", false);
    if (const std::optional<double> top = reader.maybe_number(number_rule("logprobs"))) {
        request.logprobs = request.sampling.logprobs = true;
        request.sampling.top_logprobs = static_cast<uint8_t>(*top);
    }
    const NumberRule& most = number_rule("max_tokens");
    request.max_tokens = static_cast<uint64_t>(reader.number(most));
    if (const std::optional<double> completion = reader.maybe_number(number_rule("max_completion_tokens")))
        request.max_tokens = static_cast<uint64_t>(*completion);
    if (reader.failed()) return reader.take_error();
    return request;
}

}  // namespace cadans::serve
