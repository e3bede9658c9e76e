#include "serve/dialects/openai_writer.h"

#include "serve/dialects/logprobs_json.h"

namespace cadans::serve {

namespace {

void append_ids(std::string& out, std::string_view key, std::span<const TokenId> ids) {
    out += ",\"";
    out += key;
    out += "\":[";
    for (size_t i = 0; i < ids.size(); ++i) {
        if (i > 0) out += ',';
        append_number(out, uint64_t{index(ids[i])});
    }
    out += ']';
}

void append_string(std::string& out, std::string_view key, std::string_view value) {
    out += '"';
    out += key;
    out += "\":\"";
    append_escaped(out, value);
    out += '"';
}

}  // namespace

OpenAiWriter::OpenAiWriter(AnswerHead head) : AnswerWriter(std::move(head)), chat_(head_.form == AnswerForm::chat) {
    prefix_ = "data: ";
    prefix_ += head_text(chat_ ? "chat.completion.chunk" : "text_completion");
    prefix_ += ",\"choices\":[";
}

std::string OpenAiWriter::head_text(const char* object) const {
    std::string out = "{";
    append_string(out, "id", head_.id);
    out += ',';
    append_string(out, "object", object);
    out += ",\"created\":";
    append_number(out, head_.created);
    out += ',';
    append_string(out, "model", head_.model);
    return out;
}

// The hot path: one frame a token, written straight, no tree in between.
void OpenAiWriter::append_choice(std::string& out, const ChoiceText& piece, const char* finish) const {
    out += "{\"index\":";
    append_number(out, uint64_t{piece.index});
    if (chat_) {
        out += ",\"delta\":{";
        bool comma = false;
        if (piece.first) {
            out += "\"role\":\"assistant\"";
            comma = true;
        }
        if (!piece.reasoning.empty()) {
            if (comma) out += ',';
            append_string(out, "reasoning_content", piece.reasoning);
            comma = true;
        }
        if (!piece.content.empty() || (piece.first && !piece.has_text())) {
            if (comma) out += ',';
            append_string(out, "content", piece.content);
            comma = true;
        }
        if (!piece.calls.empty()) {
            if (comma) out += ',';
            append_calls(out, piece.calls, true);
        }
        out += '}';
    } else {
        out += ',';
        append_string(out, "text", piece.content);
    }
    append_logprobs(out, piece);
    if (head_.return_token_ids) {
        append_ids(out, "token_ids", piece.ids);
        if (!chat_ && piece.first) append_ids(out, "prompt_token_ids", piece.prompt_ids);
    }
    out += ",\"finish_reason\":";
    if (finish == nullptr) {
        out += "null}";
    } else {
        out += '"';
        out += finish;
        out += "\"}";
    }
}

/// Pieces have their call's index, and what does not change in the first alone; whole calls have neither index nor a
/// second piece.
void OpenAiWriter::append_calls(std::string& out, std::span<const CallText> calls, bool pieces) const {
    out += "\"tool_calls\":[";
    bool comma = false;
    for (const CallText& call : calls) {
        if (comma) out += ',';
        comma = true;
        out += '{';
        if (pieces) {
            out += "\"index\":";
            append_number(out, uint64_t{call.index});
            out += ',';
        }
        if (call.first) {
            append_string(out, "id", call.id);
            out += ",\"type\":\"function\",";
        }
        out += "\"function\":{";
        if (call.first) {
            append_string(out, "name", call.name);
            out += ',';
        }
        append_string(out, "arguments", call.arguments);
        out += "}}";
    }
    out += ']';
}

void OpenAiWriter::append_logprobs(std::string& out, const ChoiceText& piece) const {
    out += ",\"logprobs\":";
    if (!head_.logprobs || piece.scored.empty()) {
        out += "null";
        return;
    }
    JsonWriter json(out);
    if (chat_)
        write_chat_logprobs(json, piece.scored, *head_.vocabulary);
    else
        write_completion_logprobs(json, piece.scored, *head_.vocabulary);
}

void OpenAiWriter::append_frame(std::string& out, const ChoiceText& piece, const char* finish,
                                const Closing* closing) const {
    out += prefix_;
    append_choice(out, piece, finish);
    out += ']';
    if (chat_ && piece.first && head_.return_token_ids) append_ids(out, "prompt_token_ids", piece.prompt_ids);
    if (head_.include_usage)
        out += ",\"usage\":null";
    else if (closing != nullptr)
        append_figures(out, *closing);
    out += "}\n\n";
}

void OpenAiWriter::append_figures(std::string& out, const Closing& closing) const {
    out += ",\"timings\":";
    JsonWriter json(out);
    write_timings(json, closing.timings);
    out += ",\"cadans\":";
    out += closing.cadans;
}

/// A frame holds words, or one stretch of one call: there are clients that look at no more of it.
void OpenAiWriter::text(std::string& out, const ChoiceText& piece) {
    if (piece.calls.empty()) return append_frame(out, piece, nullptr, nullptr);
    ChoiceText part = piece;
    const auto send = [&] {
        append_frame(out, part, nullptr, nullptr);
        part = {};
        part.index = piece.index;
        part.first = false;
    };
    part.calls.clear();
    if (part.first || part.has_text()) send();
    for (const CallText& call : piece.calls) {
        part.calls.assign(1, call);
        send();
    }
}

void OpenAiWriter::finish(std::string& out, const ChoiceText& rest, FinishReason reason, const Closing* closing) {
    append_frame(out, rest, finish_name(reason, rest.called), closing);
}

void OpenAiWriter::end(std::string& out, const Closing& closing) {
    if (head_.include_usage) {
        out += prefix_;
        out += "],\"usage\":";
        JsonWriter json(out);
        write_usage(json, closing.figures, closing.completion_tokens, closing.reasoning_tokens);
        append_figures(out, closing);
        out += "}\n\n";
    }
    out += "data: [DONE]\n\n";
}

void OpenAiWriter::progress(std::string& out, const Progress& progress) {
    out += prefix_;
    out += "],\"cadans\":{\"progress\":";
    JsonWriter json(out);
    json.object().key("phase").text(progress.phase);
    json.key("computed").number(progress.computed);
    json.key("total").number(progress.total);
    json.key("cached").number(progress.cached);
    json.key("seconds_left");
    if (progress.seconds_left)
        json.number(*progress.seconds_left);
    else
        json.null();
    json.key("queue_place");
    if (progress.queue_place)
        json.number(*progress.queue_place);
    else
        json.null();
    if (progress.percent) json.key("percent").number(*progress.percent);
    json.close();
    out += '}';
    if (head_.include_usage) out += ",\"usage\":null";
    out += "}\n\n";
}

void OpenAiWriter::idle(std::string& out) { out += ": waiting\n\n"; }

void OpenAiWriter::error(std::string& out, const Error& error) {
    out += "data: ";
    out += error_body(error, Dialect::openai);
    out += "\n\n";
}

std::string OpenAiWriter::whole(std::span<const ChoiceText> choices, std::span<const FinishReason> reasons,
                                const Closing& closing) {
    std::string out = head_text(chat_ ? "chat.completion" : "text_completion");
    out += ",\"choices\":[";
    for (size_t i = 0; i < choices.size(); ++i) {
        if (i > 0) out += ',';
        append_whole_choice(out, choices[i], finish_name(reasons[i], choices[i].called));
    }
    out += ']';
    if (chat_ && head_.return_token_ids && !choices.empty())
        append_ids(out, "prompt_token_ids", choices.front().prompt_ids);
    out += ",\"usage\":";
    JsonWriter json(out);
    write_usage(json, closing.figures, closing.completion_tokens, closing.reasoning_tokens);
    append_figures(out, closing);
    out += '}';
    return out;
}

void OpenAiWriter::append_whole_choice(std::string& out, const ChoiceText& choice, const char* finish) const {
    if (!chat_) return append_choice(out, choice, finish);
    out += "{\"index\":";
    append_number(out, uint64_t{choice.index});
    out += ",\"message\":{\"role\":\"assistant\",";
    if (!choice.calls.empty() && choice.content.empty())
        out += "\"content\":null";
    else
        append_string(out, "content", choice.content);
    if (!choice.reasoning.empty()) {
        out += ',';
        append_string(out, "reasoning_content", choice.reasoning);
    }
    if (!choice.calls.empty()) {
        out += ',';
        append_calls(out, whole_calls(choice.calls), false);
    }
    out += ",\"refusal\":null}";
    append_logprobs(out, choice);
    if (head_.return_token_ids) append_ids(out, "token_ids", choice.ids);
    out += ",\"finish_reason\":\"";
    out += finish;
    out += "\"}";
}

}  // namespace cadans::serve
