// Text to tokens and back, in llama-server's and vLLM's forms.
#include "base/clock.h"
#include "serve/dialects/common_fields.h"
#include "serve/dialects/json_body.h"
#include "serve/dialects/json_writer.h"
#include "serve/dialects/tool_fields.h"
#include "serve/doors.h"
#include "serve/token_stream.h"

namespace cadans::serve {

namespace {

struct Call {
    Json body;
    const ServedModel* model = nullptr;
};

Result<Call> read_call(const HttpRequest& request, const Result<const House*>& house) {
    Result<Json> body = parse_body(request.body);
    if (!body) return std::move(body).error();
    if (!house) return house.error();
    Call call{*std::move(body), nullptr};
    FieldReader reader(call.body);
    call.model = read_model(reader, (*house)->catalog, false);
    if (reader.failed()) return reader.take_error();
    return call;
}

Opened refused(const Error& error) { return error_reply(error, Dialect::openai); }

struct Rendered {
    std::vector<text::Segment> segments;
    std::string text;
};

Result<Rendered> render(const Call& call) {
    FieldReader reader(call.body);
    const text::ChatTemplate* chat_template = call.model->chat_template;
    if (chat_template == nullptr)
        return unsupported("the model \"" + call.model->name + "\" has no chat template", "messages");
    const Json* messages = reader.find("messages");
    if (messages == nullptr) return bad_input("messages: a list of messages is needed", "messages");
    ToolUse tools;
    read_tools(reader, tools);
    if (reader.failed()) return reader.take_error();
    Result<Conversation> read = read_messages(*messages, *call.model, tools);
    if (!read) return std::move(read).error();
    if (read->messages.empty()) return bad_input("messages: the list is empty", "messages");
    const text::Vocabulary& vocabulary = call.model->tokenizer->vocabulary();
    text::RenderOptions options;
    options.add_generation_prompt = reader.boolean("add_generation_prompt", true);
    if (vocabulary.bos()) options.bos_token = vocabulary.bytes(*vocabulary.bos());
    if (vocabulary.eos()) options.eos_token = vocabulary.bytes(*vocabulary.eos());
    options.now_unix_seconds = unix_seconds();
    options.tools = read->tools;
    if (reader.failed()) return reader.take_error();
    Result<std::vector<text::Segment>> segments = chat_template->render(read->messages, options);
    if (!segments) return std::move(segments).error();
    Rendered out{*std::move(segments), {}};
    for (const text::Segment& segment : out.segments) out.text += segment.text;
    return out;
}

// A token's text where it is text, its bytes where it is none: as llama-server does it.
void write_piece(JsonWriter& json, std::string_view bytes) {
    if (is_utf8(bytes)) {
        json.text(bytes);
        return;
    }
    json.array();
    for (const char c : bytes) json.number(uint32_t{static_cast<uint8_t>(c)});
    json.close();
}

void write_ids(JsonWriter& json, std::span<const TokenId> ids) {
    json.array();
    for (const TokenId id : ids) json.number(index(id));
    json.close();
}

void write_optional(JsonWriter& json, const char* key, const text::Vocabulary& vocabulary, std::optional<TokenId> id) {
    json.key(key);
    if (id)
        json.text(vocabulary.bytes(*id));
    else
        json.null();
}

}  // namespace

Opened Doors::tokenize(const HttpRequest& request) {
    Result<Call> call = read_call(request, house());
    if (!call) return refused(call.error());
    FieldReader reader(call->body);
    const bool has_content = reader.given("content"), has_prompt = reader.given("prompt");
    const bool has_messages = reader.given("messages");
    if (!has_content && !has_prompt && !has_messages)
        return refused(bad_input("content (or prompt, or messages): the text is needed", "content"));
    const text::Tokenizer& tokenizer = *call->model->tokenizer;
    const std::string content = has_messages ? std::string() : reader.string(has_content ? "content" : "prompt");
    const bool add_special =
        has_content ? reader.boolean("add_special", false) : reader.boolean("add_special_tokens", true);
    const bool parse_special = reader.boolean("parse_special", true);
    const bool with_pieces = reader.boolean("with_pieces", false);
    const bool with_strings = reader.boolean("return_token_strs", false);
    if (reader.failed()) return refused(reader.take_error());
    std::vector<TokenId> ids;
    if (has_messages && !has_content && !has_prompt) {
        Result<Rendered> rendered = render(*call);
        if (!rendered) return refused(rendered.error());
        ids = tokenizer.encode(rendered->segments, call->model->markers);
    } else {
        ids = tokenizer.encode(content, {.add_special = add_special, .parse_special = parse_special});
    }
    const text::Vocabulary& vocabulary = tokenizer.vocabulary();
    HttpReply reply;
    JsonWriter json(reply.body);
    json.object().key("tokens");
    if (with_pieces) {
        json.array();
        for (const TokenId id : ids) {
            json.object().key("id").number(index(id)).key("piece");
            write_piece(json, vocabulary.bytes(id));
            json.close();
        }
        json.close();
    } else {
        write_ids(json, ids);
    }
    if (!has_content) {
        json.key("count").number(uint64_t{ids.size()});
        json.key("max_model_len").number(call->model->context_tokens);
        if (with_strings) {
            json.key("token_strs").array();
            for (const TokenId id : ids) json.text(token_name(vocabulary, id));
            json.close();
        }
    }
    json.close();
    return reply;
}

Opened Doors::detokenize(const HttpRequest& request) {
    Result<Call> call = read_call(request, house());
    if (!call) return refused(call.error());
    FieldReader reader(call->body);
    const Json* tokens = reader.find("tokens");
    if (tokens == nullptr) return refused(bad_input("tokens: a list of token ids is needed", "tokens"));
    const text::Vocabulary& vocabulary = call->model->tokenizer->vocabulary();
    Result<std::vector<TokenId>> ids = read_token_ids(*tokens, vocabulary, "tokens");
    if (!ids) return refused(ids.error());
    const std::string text = text::detokenize(vocabulary, *ids, {.skip_control = false, .at_start = true});
    HttpReply reply;
    JsonWriter(reply.body).object().key("content").text(text).key("prompt").text(text).close();
    return reply;
}

Opened Doors::tokenizer_info(const HttpRequest&) {
    const Result<const House*> house = this->house();
    if (!house) return refused(house.error());
    const Result<const ServedModel*> found = (*house)->catalog.find("", false);
    if (!found) return refused(found.error());
    const ServedModel& model = **found;
    const text::Vocabulary& vocabulary = model.tokenizer->vocabulary();
    HttpReply reply;
    JsonWriter json(reply.body);
    json.object();
    json.key("tokenizer_class").text(vocabulary.model() == text::VocabularyModel::byte_bpe ? "gpt2" : "llama");
    json.key("model").text(model.name);
    json.key("vocab_size").number(vocabulary.size());
    json.key("model_max_length").number(model.context_tokens);
    json.key("max_model_len").number(model.context_tokens);
    json.key("add_bos_token").boolean(vocabulary.add_bos());
    json.key("add_eos_token").boolean(vocabulary.add_eos());
    write_optional(json, "bos_token", vocabulary, vocabulary.bos());
    write_optional(json, "eos_token", vocabulary, vocabulary.eos());
    write_optional(json, "pad_token", vocabulary, vocabulary.padding());
    write_optional(json, "unk_token", vocabulary, vocabulary.unknown());
    json.key("chat_template");
    if (model.chat_template != nullptr)
        json.text(model.chat_template->source());
    else
        json.null();
    json.close();
    return reply;
}

Opened Doors::apply_template(const HttpRequest& request) {
    Result<Call> call = read_call(request, house());
    if (!call) return refused(call.error());
    Result<Rendered> rendered = render(*call);
    if (!rendered) return refused(rendered.error());
    HttpReply reply;
    JsonWriter(reply.body).object().key("prompt").text(rendered->text).close();
    return reply;
}

}  // namespace cadans::serve
