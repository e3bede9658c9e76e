#include "serve/dialects/preload.h"

#include "base/clock.h"
#include "serve/dialects/error_reply.h"
#include "serve/dialects/ollama_writer.h"

namespace cadans::serve {

void Preload::begin(ModelKeeper& keeper) {
    keeper_ = &keeper;
    if (request_.keep_alive != Nanos{0}) return keeper.ask(*this, request_.model->model, request_.keep_alive);
    over_ = true;
    keeper.keep(request_.model->model, 0);
}

void Preload::let_in(Stay, Nanos now) {
    if (load_begin_) load_time_ = now - *load_begin_;
    over_ = true;
    if (on_change) on_change();
}

void Preload::refused(const Error& error, Nanos) {
    failure_ = error;
    over_ = true;
    if (on_change) on_change();
}

HttpReply Preload::reply() const {
    if (failure_) return error_reply(*failure_, Dialect::ollama, 2);
    metrics::OllamaDurations durations;
    durations.load_duration = load_time_;
    durations.total_duration = steady_now() - accepted_;
    HttpReply reply;
    reply.body =
        ollama_loaded({.form = request_.form, .id = {}, .model = request_.model->name, .created = unix_seconds()},
                      request_.keep_alive == Nanos{0} ? "unload" : "load", durations);
    if (request_.stream) {
        reply.body += '\n';
        reply.content_type = "application/x-ndjson";
    }
    return reply;
}

}  // namespace cadans::serve
