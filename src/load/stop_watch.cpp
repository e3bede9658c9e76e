#include "load/stop_watch.h"

#include <nlohmann/json.hpp>

#include "base/clock.h"

namespace cadans::load {
namespace {

using Json = nlohmann::json;

const Json* find(const Json& object, const char* key) {
    const auto found = object.is_object() ? object.find(key) : object.end();
    return !object.is_object() || found == object.end() || found->is_null() ? nullptr : &*found;
}

size_t text_bytes(const Json& object, const char* key) {
    const Json* value = find(object, key);
    return value != nullptr && value->is_string() ? value->get_ref<const std::string&>().size() : 0;
}

void take_count(const Json& object, const char* key, uint32_t& into) {
    if (const Json* value = find(object, key); value != nullptr && value->is_number_unsigned())
        into = value->get<uint32_t>();
}

/// What a frame holds, whichever dialect it is of.
struct Frame {
    size_t text = 0;  ///< bytes
    bool last = false;
    std::string error;
};

std::string message_of(const Json& error) {
    if (error.is_string()) return error.get<std::string>();
    if (const Json* message = find(error, "message"); message != nullptr && message->is_string())
        return message->get<std::string>();
    return "the server said that something went wrong";
}

Frame read_openai(const Json& frame, Answer& answer) {
    Frame out;
    if (const Json* error = find(frame, "error")) out.error = message_of(*error);
    if (const Json* choices = find(frame, "choices"); choices != nullptr && choices->is_array() && !choices->empty()) {
        const Json& choice = choices->front();
        if (const Json* delta = find(choice, "delta"))
            for (const char* key : {"content", "reasoning_content", "reasoning"}) out.text += text_bytes(*delta, key);
        out.text += text_bytes(choice, "text");
        out.last = find(choice, "finish_reason") != nullptr;
    }
    if (const Json* usage = find(frame, "usage")) {
        take_count(*usage, "prompt_tokens", answer.prompt_tokens);
        take_count(*usage, "completion_tokens", answer.output_tokens);
    }
    if (const Json* timings = find(frame, "timings"))
        if (const Json* ms = find(*timings, "prompt_ms"); ms != nullptr && ms->is_number())
            answer.prompt_ms = ms->get<double>();
    return out;
}

Frame read_ollama(const Json& frame, Answer& answer) {
    Frame out;
    if (const Json* error = find(frame, "error")) out.error = message_of(*error);
    if (const Json* message = find(frame, "message"))
        out.text = text_bytes(*message, "content") + text_bytes(*message, "thinking");
    out.text += text_bytes(frame, "response");
    const Json* done = find(frame, "done");
    out.last = done != nullptr && done->is_boolean() && done->get<bool>();
    if (out.last) {
        take_count(frame, "prompt_eval_count", answer.prompt_tokens);
        take_count(frame, "eval_count", answer.output_tokens);
        if (const Json* ns = find(frame, "prompt_eval_duration"); ns != nullptr && ns->is_number())
            answer.prompt_ms = ns->get<double>() / 1e6;
    }
    return out;
}

}  // namespace

Answer ask(const Peer& peer, const std::string& prompt, uint32_t output) {
    Answer answer;
    bool whole = false;
    const client::Request request = request_for(peer, prompt, output);
    answer.sent = steady_now();
    const auto reply = client::call_lines(peer.url, request, [&](std::string_view line) {
        const Nanos now = steady_now();
        if (peer.dialect == Dialect::openai) {
            if (!line.starts_with("data:")) return true;
            line.remove_prefix(5);
        }
        while (line.starts_with(' ')) line.remove_prefix(1);
        if (line.empty() || line == "[DONE]") return true;
        const Json json = Json::parse(line, nullptr, false);
        const Frame frame = peer.dialect == Dialect::openai ? read_openai(json, answer) : read_ollama(json, answer);
        if (!frame.error.empty()) answer.error = frame.error;
        whole = whole || frame.last;
        if (frame.text == 0) return true;
        answer.pieces++;
        answer.bytes += frame.text;
        if (!answer.first) answer.first_bytes = frame.text;
        if (answer.last)
            answer.gaps.push_back(now - *answer.last);
        else
            answer.first = now;
        answer.last = now;
        return true;
    });
    answer.end = steady_now();
    if (!reply) {
        answer.error = reply.error().message;
    } else {
        answer.status = reply->status;
        if (reply->status != 200) {
            const Json body = Json::parse(reply->body, nullptr, false);
            const Json* error = find(body, "error");
            answer.error = error != nullptr ? message_of(*error) : "status " + std::to_string(reply->status);
        } else if (!whole && answer.error.empty()) {
            answer.error = "the answer ended without its end";
        }
    }
    if (answer.output_tokens == 0) answer.output_tokens = answer.pieces;
    return answer;
}

}  // namespace cadans::load
