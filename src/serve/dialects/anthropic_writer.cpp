#include "serve/dialects/anthropic_writer.h"

namespace cadans::serve {

namespace {

/// Appends one event whose data `write` fills in.
template <class Write>
void append_event(std::string& out, const char* type, Write&& write) {
    out += "event: ";
    out += type;
    out += "\ndata: ";
    JsonWriter json(out);
    json.object().key("type").text(type);
    write(json);
    json.close();
    out += "\n\n";
}

const char* stop_reason(FinishReason reason, const ChoiceText& text) noexcept {
    if (reason == FinishReason::length) return "max_tokens";
    if (!text.stopped_by.empty()) return "stop_sequence";
    return text.called ? "tool_use" : "end_turn";
}

void write_stop(JsonWriter& json, FinishReason reason, const ChoiceText& text) {
    json.key("stop_reason").text(stop_reason(reason, text));
    json.key("stop_sequence");
    if (text.stopped_by.empty())
        json.null();
    else
        json.text(text.stopped_by);
}

/// What was read from the cache is not in input_tokens there.
void write_usage(JsonWriter& json, uint32_t prompt_tokens, uint32_t cached, uint32_t output) {
    json.key("usage").object();
    json.key("input_tokens").number(prompt_tokens - cached);
    json.key("cache_creation_input_tokens").number(0);
    json.key("cache_read_input_tokens").number(cached);
    json.key("output_tokens").number(output);
    json.close();
}

void write_figures(JsonWriter& json, const Closing& closing) {
    write_timings(json.key("timings"), closing.timings);
    json.key("cadans").raw(closing.cadans);
}

}  // namespace

void AnthropicWriter::begin(std::string& out) {
    if (begun_) return;
    begun_ = true;
    append_event(out, "message_start", [&](JsonWriter& json) {
        json.key("message").object();
        json.key("id").text(head_.id).key("type").text("message").key("role").text("assistant");
        json.key("model").text(head_.model).key("content").array().close();
        json.key("stop_reason").null().key("stop_sequence").null();
        write_usage(json, head_.prompt_tokens, 0, 0);
        json.close();
    });
}

void AnthropicWriter::open(std::string& out, Block block, const CallText* call) {
    close(out);
    open_ = block;
    append_event(out, "content_block_start", [&](JsonWriter& json) {
        json.key("index").number(blocks_).key("content_block").object();
        if (block == Block::thinking)
            json.key("type").text("thinking").key("thinking").text("").key("signature").text("");
        if (block == Block::text) json.key("type").text("text").key("text").text("");
        if (call != nullptr) {
            json.key("type").text("tool_use").key("id").text(call->id).key("name").text(call->name);
            json.key("input").object().close();
        }
        json.close();
    });
    blocks_++;
}

void AnthropicWriter::close(std::string& out) {
    if (open_ == Block::none) return;
    open_ = Block::none;
    append_event(out, "content_block_stop", [&](JsonWriter& json) { json.key("index").number(blocks_ - 1); });
}

void AnthropicWriter::delta(std::string& out, const char* type, const char* field, std::string_view text) const {
    append_event(out, "content_block_delta", [&](JsonWriter& json) {
        json.key("index").number(blocks_ - 1);
        json.key("delta").object().key("type").text(type).key(field).text(text).close();
    });
}

void AnthropicWriter::text(std::string& out, const ChoiceText& piece) {
    begin(out);
    if (!piece.reasoning.empty()) {
        if (open_ != Block::thinking) open(out, Block::thinking, nullptr);
        delta(out, "thinking_delta", "thinking", piece.reasoning);
    }
    if (!piece.content.empty()) {
        if (open_ != Block::text) open(out, Block::text, nullptr);
        delta(out, "text_delta", "text", piece.content);
    }
    for (const CallText& call : piece.calls) {
        if (call.first) open(out, Block::call, &call);
        if (!call.arguments.empty()) delta(out, "input_json_delta", "partial_json", call.arguments);
    }
}

void AnthropicWriter::finish(std::string& out, const ChoiceText& rest, FinishReason reason, const Closing* closing) {
    text(out, rest);
    close(out);
    append_event(out, "message_delta", [&](JsonWriter& json) {
        json.key("delta").object();
        write_stop(json, reason, rest);
        json.close();
        if (closing == nullptr) return;
        write_usage(json, head_.prompt_tokens, closing->figures.cached_tokens, closing->completion_tokens);
        write_figures(json, *closing);
    });
}

void AnthropicWriter::end(std::string& out, const Closing&) {
    append_event(out, "message_stop", [](JsonWriter&) {});
}

void AnthropicWriter::idle(std::string& out) {
    begin(out);
    append_event(out, "ping", [](JsonWriter&) {});
}

void AnthropicWriter::error(std::string& out, const Error& error) {
    out += "event: error\ndata: ";
    out += error_body(error, Dialect::anthropic);
    out += "\n\n";
}

std::string AnthropicWriter::whole(std::span<const ChoiceText> choices, std::span<const FinishReason> reasons,
                                   const Closing& closing) {
    const ChoiceText& text = choices.front();
    std::string out;
    JsonWriter json(out);
    json.object();
    json.key("id").text(head_.id).key("type").text("message").key("role").text("assistant");
    json.key("model").text(head_.model).key("content").array();
    if (!text.reasoning.empty())
        json.object()
            .key("type")
            .text("thinking")
            .key("thinking")
            .text(text.reasoning)
            .key("signature")
            .text("")
            .close();
    if (!text.content.empty()) json.object().key("type").text("text").key("text").text(text.content).close();
    for (const CallText& call : whole_calls(text.calls)) {
        if (!call.last) continue;  // cut: it has no arguments that could be shown as an object
        json.object().key("type").text("tool_use").key("id").text(call.id).key("name").text(call.name);
        json.key("input").raw(call.arguments);
        json.close();
    }
    json.close();
    write_stop(json, reasons.front(), text);
    write_usage(json, head_.prompt_tokens, closing.figures.cached_tokens, closing.completion_tokens);
    write_figures(json, closing);
    json.close();
    return out;
}

}  // namespace cadans::serve
