#include "serve/dialects/ollama_writer.h"

#include <algorithm>
#include <array>
#include <ctime>

#include "serve/dialects/json_writer.h"

namespace cadans::serve {

namespace {

/// A line of the stream is one line: what a model wrote over several has line ends between its parts alone, since a
/// string holds none.
std::string on_one_line(std::string json) {
    std::ranges::replace(json, '\n', ' ');
    return json;
}

void write_calls(JsonWriter& json, std::span<const CallText> calls) {
    json.key("tool_calls").array();
    for (const CallText& call : calls) {
        json.object().key("id").text(call.id);
        json.key("function").object().key("index").number(call.index).key("name").text(call.name);
        json.key("arguments").raw(on_one_line(call.arguments)).close();
        json.close();
    }
    json.close();
}

/// `calls`: whole ones.
void write_message(JsonWriter& json, bool chat, std::string_view content, std::string_view thinking,
                   std::span<const CallText> calls = {}) {
    if (chat) json.key("message").object().key("role").text("assistant");
    json.key(chat ? "content" : "response").text(content);
    if (!thinking.empty()) json.key("thinking").text(thinking);
    if (!calls.empty()) write_calls(json, calls);
    if (chat) json.close();
}

void write_durations(JsonWriter& json, const metrics::OllamaDurations& durations) {
    json.key("total_duration").number(durations.total_duration);
    json.key("load_duration").number(durations.load_duration);
    json.key("prompt_eval_count").number(durations.prompt_eval_count);
    json.key("prompt_eval_cached_count").number(durations.prompt_eval_cached_count);
    json.key("prompt_eval_duration").number(durations.prompt_eval_duration);
    json.key("eval_count").number(durations.eval_count);
    json.key("eval_duration").number(durations.eval_duration);
}

}  // namespace

OllamaWriter::OllamaWriter(AnswerHead head)
    : AnswerWriter(std::move(head)), chat_(head_.form == AnswerForm::ollama_chat) {}

void OllamaWriter::append_line(std::string& out, const ChoiceText& piece, const char* done_reason,
                               const Closing* closing) const {
    JsonWriter json(out);
    json.object();
    json.key("model").text(head_.model);
    json.key("created_at").text(timestamp(head_.created));
    write_message(json, chat_, piece.content, piece.reasoning, piece.calls);
    json.key("done").boolean(done_reason != nullptr);
    if (done_reason != nullptr) json.key("done_reason").text(done_reason);
    if (closing != nullptr) {
        write_durations(json, closing->durations);
        write_timings(json.key("timings"), closing->timings);
        json.key("cadans").raw(closing->cadans);
    }
    json.close();
}

/// The piece with the calls that are whole by now: arguments are an object here and cannot come in parts. Those of a
/// call that was cut never come.
ChoiceText OllamaWriter::complete_calls(const ChoiceText& piece) {
    ChoiceText out = piece;
    out.calls.clear();
    for (const CallText& call : piece.calls) {
        if (call.first) begun_ = call;
        if (!call.first) begun_.arguments += call.arguments;
        if (call.last) out.calls.push_back(std::move(begun_));
    }
    return out;
}

void OllamaWriter::text(std::string& out, const ChoiceText& piece) {
    const ChoiceText whole = complete_calls(piece);
    if (!piece.calls.empty() && !whole.has_text()) return;
    append_line(out, whole, nullptr, nullptr);
    out += '\n';
}

void OllamaWriter::finish(std::string& out, const ChoiceText& rest, FinishReason reason, const Closing* closing) {
    append_line(out, complete_calls(rest), finish_name(reason), closing);
    out += '\n';
}

// Clients parse every line, blank ones too: an empty piece is the only sign of life that all of them can read.
void OllamaWriter::idle(std::string& out) { text(out, ChoiceText{}); }

void OllamaWriter::error(std::string& out, const Error& error) {
    out += error_body(error, Dialect::ollama);
    out += '\n';
}

std::string OllamaWriter::whole(std::span<const ChoiceText> choices, std::span<const FinishReason> reasons,
                                const Closing& closing) {
    std::string out;
    append_line(out, complete_calls(choices.front()), finish_name(reasons.front()), &closing);
    return out;
}

std::string ollama_loaded(const AnswerHead& head, const char* reason, const metrics::OllamaDurations& durations) {
    std::string out;
    JsonWriter json(out);
    json.object();
    json.key("model").text(head.model);
    json.key("created_at").text(timestamp(head.created));
    if (head.form == AnswerForm::ollama_embed)
        json.key("embeddings").array().close();
    else if (head.form == AnswerForm::ollama_embeddings)
        json.key("embedding").array().close();
    else
        write_message(json, head.form == AnswerForm::ollama_chat, "", "");
    json.key("done").boolean(true).key("done_reason").text(reason);
    write_durations(json, durations);
    json.close();
    return out;
}

std::string timestamp(int64_t unix_seconds) {
    const auto seconds = static_cast<time_t>(unix_seconds);
    std::tm parts{};
    gmtime_r(&seconds, &parts);
    std::array<char, 40> buffer{};
    const size_t length = std::strftime(buffer.data(), buffer.size(), "%Y-%m-%dT%H:%M:%S", &parts);
    return std::string(buffer.data(), length) + ".000000Z";
}

}  // namespace cadans::serve
