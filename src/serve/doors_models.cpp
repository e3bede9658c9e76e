// The models, as OpenAI's and Ollama's clients list them.
#include <algorithm>

#include "base/clock.h"
#include "serve/dialects/answer_writer.h"
#include "serve/dialects/common_fields.h"
#include "serve/dialects/json_body.h"
#include "serve/dialects/json_writer.h"
#include "serve/doors.h"

namespace cadans::serve {

namespace {

// Clients compare this with the release that first had what they need; "cadans_version" is ours.
constexpr const char* kOllamaLevel = "0.12.0";
constexpr const char* kOwnVersion = "0.1.0";
constexpr const char* kFarFuture = "2318-01-01T00:00:00Z";  // a model stays until others need the memory

void write_openai_model(JsonWriter& json, const ServedModel& model) {
    json.object();
    json.key("id").text(model.name).key("object").text("model");
    json.key("created").number(model.file.modified_unix_seconds).key("owned_by").text("cadans");
    json.key("max_model_len").number(model.context_tokens).key("context_length").number(model.context_tokens);
    json.key("meta").object();
    json.key("n_vocab").number(model.tokenizer->vocabulary().size());
    json.key("n_ctx").number(model.context_tokens).key("n_ctx_train").number(model.trained_context_tokens);
    json.key("n_embd").number(model.file.embedding_length).key("n_params").number(model.file.parameters);
    json.key("size").number(model.file.bytes).key("kv_tokens").number(model.kv_tokens);
    json.key("chat").boolean(model.chat_template != nullptr);
    json.close().close();
}

void write_details(JsonWriter& json, const ServedModel& model) {
    json.key("details").object();
    json.key("parent_model").text("").key("format").text("gguf").key("family").text(model.file.architecture);
    json.key("families").array().text(model.file.architecture).close();
    json.key("parameter_size").text(model.file.parameter_size);
    json.key("quantization_level").text(model.file.quantization);
    json.key("context_length").number(model.context_tokens).key("embedding_length").number(model.file.embedding_length);
    json.close();
}

void write_capabilities(JsonWriter& json, const ServedModel& model) {
    json.key("capabilities").array().text("completion").text("embedding");
    if (model.chat_template != nullptr) json.text("tools");
    if (model.reasoning) json.text("thinking");
    json.close();
}

void begin_tag(JsonWriter& json, const ServedModel& model) {
    const std::string name = model.name + ":latest";
    json.object().key("name").text(name).key("model").text(name);
}

void write_tag(JsonWriter& json, const ServedModel& model) {
    begin_tag(json, model);
    json.key("modified_at").text(timestamp(model.file.modified_unix_seconds));
    json.key("size").number(model.file.bytes).key("digest").text(model.file.digest);
    write_details(json, model);
    write_capabilities(json, model);
    json.close();
}

void write_resident(JsonWriter& json, const ServedModel& model, const ModelKeeper& keeper) {
    begin_tag(json, model);
    json.key("size").number(std::max(model.file.resident_bytes, model.file.bytes));
    json.key("digest").text(model.file.digest);
    write_details(json, model);
    const Nanos now = steady_now();
    const Nanos expires = keeper.models().expires(model.model, now);
    json.key("expires_at");
    expires == kForEver ? json.text(kFarFuture)
                        : json.text(timestamp(unix_seconds() + (expires - now) / kNanosPerSecond));
    json.key("size_vram").number(0).key("context_length").number(model.context_tokens);
    json.key("cadans").object().key("users").number(keeper.models().users(model.model)).key("last_load_ns");
    const std::optional<Nanos> last = keeper.last_load(model.model);
    last ? json.number(*last) : json.null();
    json.close().close();
}

struct WriteFact {
    JsonWriter& json;
    void operator()(bool value) const { json.boolean(value); }
    void operator()(int64_t value) const { json.number(value); }
    void operator()(uint64_t value) const { json.number(value); }
    void operator()(double value) const { json.number(value); }
    void operator()(const std::string& value) const { json.text(value); }
};

void write_model_info(JsonWriter& json, const ServedModel& model) {
    json.key("model_info").object();
    const auto& facts = model.file.metadata;
    for (const auto& [key, value] : facts) {
        json.key(key);
        std::visit(WriteFact{json}, value);
    }
    // Clients index these three without looking whether they are there.
    const auto missing = [&](const std::string& key) {
        return std::none_of(facts.begin(), facts.end(), [&](const auto& fact) { return fact.first == key; });
    };
    if (missing("general.architecture")) json.key("general.architecture").text(model.file.architecture);
    if (missing("general.basename")) json.key("general.basename").text(model.name);
    const std::string context = model.file.architecture + ".context_length";
    if (missing(context)) json.key(context).number(model.trained_context_tokens);
    json.close();
}

/// `write` decides what is said of each model, if anything.
template <class Write>
Opened model_list(const Result<const House*>& house, Write&& write) {
    if (!house) return error_reply(house.error(), Dialect::ollama);
    HttpReply reply;
    JsonWriter json(reply.body);
    json.object().key("models").array();
    for (const ServedModel& model : (*house)->catalog.models()) write(json, model, (*house)->keeper);
    json.close().close();
    return reply;
}

}  // namespace

Opened Doors::models(const HttpRequest&) {
    const Result<const House*> house = this->house();
    if (!house) return error_reply(house.error(), Dialect::openai);
    HttpReply reply;
    JsonWriter json(reply.body);
    json.object().key("object").text("list").key("data").array();
    for (const ServedModel& model : (*house)->catalog.models()) write_openai_model(json, model);
    json.close().close();
    return reply;
}

Opened Doors::model(const HttpRequest& request) {
    const Result<const House*> house = this->house();
    if (!house) return error_reply(house.error(), Dialect::openai);
    const Result<const ServedModel*> found =
        (*house)->catalog.find(request.path.substr(std::string_view("/v1/models/").size()), false);
    if (!found) return error_reply(found.error(), Dialect::openai);
    HttpReply reply;
    JsonWriter json(reply.body);
    write_openai_model(json, **found);
    return reply;
}

Opened Doors::ollama_version(const HttpRequest&) {
    HttpReply reply;
    JsonWriter(reply.body).object().key("version").text(kOllamaLevel).key("cadans_version").text(kOwnVersion).close();
    return reply;
}

Opened Doors::ollama_tags(const HttpRequest&) {
    return model_list(house(),
                      [](JsonWriter& json, const ServedModel& model, const ModelKeeper&) { write_tag(json, model); });
}

Opened Doors::ollama_ps(const HttpRequest&) {
    return model_list(house(), [](JsonWriter& json, const ServedModel& model, const ModelKeeper& keeper) {
        if (keeper.models().state(model.model) == ResidentSet::State::resident) write_resident(json, model, keeper);
    });
}

Opened Doors::ollama_show(const HttpRequest& request) {
    Result<Json> body = parse_body(request.body);
    if (!body) return error_reply(body.error(), Dialect::ollama);
    const Result<const House*> house = this->house();
    if (!house) return error_reply(house.error(), Dialect::ollama);
    FieldReader reader(*body);
    const ServedModel* model = read_model(reader, (*house)->catalog, true);
    if (reader.failed()) return error_reply(reader.take_error(), Dialect::ollama);
    HttpReply reply;
    JsonWriter json(reply.body);
    json.object();
    json.key("license").text(model->file.license);
    json.key("modelfile").text("# served by Cadans\nFROM " + model->name + "\n");
    json.key("parameters").text("num_ctx                        " + std::to_string(model->context_tokens));
    json.key("template").text(model->chat_template == nullptr ? "" : model->chat_template->source());
    json.key("system").text("");
    write_details(json, *model);
    write_model_info(json, *model);
    write_capabilities(json, *model);
    json.key("modified_at").text(timestamp(model->file.modified_unix_seconds));
    json.close();
    return reply;
}

}  // namespace cadans::serve
