#include "serve/dialects/responses_writer.h"

namespace cadans::serve {

namespace {

const char* status_of(FinishReason reason) noexcept {
    return reason == FinishReason::length ? "incomplete" : "completed";
}

const char* prefix_of(bool thinking, bool call) noexcept { return thinking ? "rs_" : call ? "fc_" : "msg_"; }

void write_part(JsonWriter& json, bool thinking, std::string_view text) {
    json.object().key("type").text(thinking ? "reasoning_text" : "output_text").key("text").text(text);
    if (!thinking) json.key("annotations").array().close().key("logprobs").array().close();
    json.close();
}

}  // namespace

/// Appends one event whose data `write` fills in; all are counted.
template <class Write>
void ResponsesWriter::event(std::string& out, const char* type, Write&& write) {
    out += "event: ";
    out += type;
    out += "\ndata: ";
    JsonWriter json(out);
    json.object().key("type").text(type).key("sequence_number").number(events_++);
    write(json);
    json.close();
    out += "\n\n";
}

void ResponsesWriter::write_place(JsonWriter& json, const Item& item, bool part) const {
    json.key("item_id").text(item.id).key("output_index").number(static_cast<uint64_t>(&item - items_.data()));
    if (part) json.key("content_index").number(0);
}

/// `whole`: with its text, as it stands when it is done.
void ResponsesWriter::write_item(JsonWriter& json, const Item& item, bool whole) const {
    const std::string_view text = whole ? std::string_view(item.text) : std::string_view();
    json.object().key("id").text(item.id);
    if (item.kind == Kind::call) {
        json.key("type").text("function_call").key("call_id").text(item.call_id).key("name").text(item.name);
        json.key("arguments").text(text);
    } else {
        const bool thinking = item.kind == Kind::thinking;
        json.key("type").text(thinking ? "reasoning" : "message");
        if (thinking) json.key("summary").array().close();
        if (!thinking) json.key("role").text("assistant");
        json.key("content").array();
        if (whole) write_part(json, thinking, text);
        json.close();
    }
    json.key("status").text(!whole ? "in_progress" : item.done ? "completed" : "incomplete").close();
}

void ResponsesWriter::write_response(JsonWriter& json, const char* status, const Closing* closing) const {
    const bool cut = std::string_view(status) == "incomplete";
    json.object().key("id").text(head_.id).key("object").text("response").key("created_at").number(head_.created);
    json.key("status").text(status).key("error").null().key("incomplete_details");
    if (cut)
        json.object().key("reason").text("max_output_tokens").close();
    else
        json.null();
    json.key("model").text(head_.model).key("output").array();
    for (const Item& item : items_) write_item(json, item, true);
    json.close();
    json.raw(head_.echoed);  // members, each with its name
    json.key("usage");
    if (closing == nullptr) {
        json.null().close();
        return;
    }
    const uint32_t input = head_.prompt_tokens, output = closing->completion_tokens;
    json.object().key("input_tokens").number(input);
    json.key("input_tokens_details").object().key("cached_tokens").number(closing->figures.cached_tokens).close();
    json.key("output_tokens").number(output);
    json.key("output_tokens_details")
        .object()
        .key("reasoning_tokens")
        .number(closing->reasoning_tokens.value_or(0))
        .close();
    json.key("total_tokens").number(input + output).close();
    write_timings(json.key("timings"), closing->timings);
    json.key("cadans").raw(closing->cadans).close();
}

void ResponsesWriter::begin(std::string& out) {
    if (begun_) return;
    begun_ = true;
    for (const char* type : {"response.created", "response.in_progress"})
        event(out, type, [&](JsonWriter& json) { write_response(json.key("response"), "in_progress", nullptr); });
}

ResponsesWriter::Item& ResponsesWriter::add(Kind kind, const CallText* call) {
    Item& item = items_.emplace_back();
    item.kind = kind;
    item.id = prefix_of(kind == Kind::thinking, kind == Kind::call) + head_.id + "_" + std::to_string(items_.size());
    if (call != nullptr) {
        item.call_id = call->id;
        item.name = call->name;
    }
    return item;
}

/// The item that text of this kind belongs to: the last, or a new one.
ResponsesWriter::Item& ResponsesWriter::grow(std::string& out, Kind kind, const CallText* call) {
    const bool goes_on = !items_.empty() && !items_.back().done && items_.back().kind == kind && call == nullptr;
    if (goes_on) return items_.back();
    close(out, true);
    Item& item = add(kind, call);
    event(out, "response.output_item.added", [&](JsonWriter& json) {
        json.key("output_index").number(uint64_t{items_.size() - 1});
        write_item(json.key("item"), item, false);
    });
    if (kind == Kind::message)
        event(out, "response.content_part.added", [&](JsonWriter& json) {
            write_place(json, item, true);
            write_part(json.key("part"), false, "");
        });
    return item;
}

void ResponsesWriter::delta(std::string& out, const char* type, const Item& item, std::string_view text) {
    event(out, type, [&](JsonWriter& json) {
        write_place(json, item, item.kind != Kind::call);
        json.key("delta").text(text);
        if (item.kind == Kind::message) json.key("logprobs").array().close();
    });
}

/// Ends the last item; `whole`: it came to its end.
void ResponsesWriter::close(std::string& out, bool whole) {
    if (items_.empty() || items_.back().done) return;
    Item& item = items_.back();
    item.done = whole;
    const char* type = item.kind == Kind::call       ? "response.function_call_arguments.done"
                       : item.kind == Kind::thinking ? "response.reasoning_text.done"
                                                     : "response.output_text.done";
    event(out, type, [&](JsonWriter& json) {
        write_place(json, item, item.kind != Kind::call);
        if (item.kind == Kind::call) json.key("name").text(item.name);
        json.key(item.kind == Kind::call ? "arguments" : "text").text(item.text);
        if (item.kind == Kind::message) json.key("logprobs").array().close();
    });
    if (item.kind == Kind::message)
        event(out, "response.content_part.done", [&](JsonWriter& json) {
            write_place(json, item, true);
            write_part(json.key("part"), false, item.text);
        });
    event(out, "response.output_item.done", [&](JsonWriter& json) {
        json.key("output_index").number(uint64_t{items_.size() - 1});
        write_item(json.key("item"), item, true);
    });
}

void ResponsesWriter::text(std::string& out, const ChoiceText& piece) {
    begin(out);
    if (!piece.reasoning.empty()) {
        Item& item = grow(out, Kind::thinking, nullptr);
        item.text += piece.reasoning;
        delta(out, "response.reasoning_text.delta", item, piece.reasoning);
    }
    if (!piece.content.empty()) {
        Item& item = grow(out, Kind::message, nullptr);
        item.text += piece.content;
        delta(out, "response.output_text.delta", item, piece.content);
    }
    for (const CallText& call : piece.calls) {
        Item& item = grow(out, Kind::call, call.first ? &call : nullptr);
        item.text += call.arguments;
        if (!call.arguments.empty()) delta(out, "response.function_call_arguments.delta", item, call.arguments);
        if (call.last) close(out, true);
    }
}

void ResponsesWriter::finish(std::string& out, const ChoiceText& rest, FinishReason reason, const Closing* closing) {
    text(out, rest);
    // A call that is still open was cut, whatever cut it.
    const bool whole = reason != FinishReason::length && (items_.empty() || items_.back().kind != Kind::call);
    close(out, whole);
    const std::string type = std::string("response.") + status_of(reason);
    event(out, type.c_str(),
          [&](JsonWriter& json) { write_response(json.key("response"), status_of(reason), closing); });
}

void ResponsesWriter::error(std::string& out, const Error& error) {
    const ErrorForm& form = error_form(error.code);
    event(out, "error", [&](JsonWriter& json) {
        json.key("code").text(form.name).key("message").text(error.message).key("param").null();
    });
}

std::string ResponsesWriter::whole(std::span<const ChoiceText> choices, std::span<const FinishReason> reasons,
                                   const Closing& closing) {
    const ChoiceText& answer = choices.front();
    const bool cut = reasons.front() == FinishReason::length;
    const auto put = [&](Kind kind, const std::string& text, const CallText* call) -> Item& {
        if (!items_.empty()) items_.back().done = true;
        Item& item = add(kind, call);
        item.text = text;
        return item;
    };
    if (!answer.reasoning.empty()) put(Kind::thinking, answer.reasoning, nullptr);
    if (!answer.content.empty()) put(Kind::message, answer.content, nullptr);
    if (!items_.empty()) items_.back().done = !cut || !answer.calls.empty();
    for (const CallText& call : whole_calls(answer.calls)) put(Kind::call, call.arguments, &call).done = call.last;
    std::string out;
    JsonWriter json(out);
    write_response(json, status_of(reasons.front()), &closing);
    return out;
}

}  // namespace cadans::serve
