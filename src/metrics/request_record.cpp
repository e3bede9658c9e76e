#include "metrics/request_record.h"

#include <algorithm>

#include "base/check.h"

namespace cadans::metrics {

void RequestRecord::queued(SeqId seq, uint32_t prompt_tokens, bool counts_prompt, Nanos now) {
    if (!queued_) queued_ = now;
    Stream stream;
    stream.seq = seq;
    stream.prompt_tokens = prompt_tokens;
    stream.counts_prompt = counts_prompt;
    streams_.push_back(stream);
}

void RequestRecord::closed(SeqId seq) {
    Stream* stream = find(seq);
    if (stream == nullptr) return;
    stream->closed = true;
    // Drafts that came behind the end of the text were for nothing.
    const uint32_t unused = stream->step_drafts - std::min(stream->step_drafts, stream->step_tokens);
    if (unused == 0) return;
    rejected_ += unused;
    steps_.back().rejected += unused;
}

void RequestRecord::flushed(SeqId seq, uint32_t tokens, Nanos now) {
    Stream* stream = find(seq);
    if (stream == nullptr) return;
    if (stream->last_flush) {
        flush_gaps_.push_back(now - *stream->last_flush);
        stream->tokens_after_first_flush += tokens;
    } else {
        stream->first_flush = now;
    }
    stream->last_flush = now;
}

void RequestRecord::done(Outcome outcome, Nanos now) {
    check(!done_, "a request is done once");
    outcome_ = outcome;
    if (preempted_since_) preemptions_.push_back({*preempted_since_, now});
    preempted_since_.reset();
    done_ = now;
}

void RequestRecord::on(const Event& event) {
    if (done_ || !queued_) return;
    if (event.kind == EventKind::step_begin) return on_step(event);
    Stream* stream = find(event.seq);
    if (stream == nullptr) return;
    switch (event.kind) {
        case EventKind::step_begin:
        case EventKind::prompt_score:
            break;
        case EventKind::step_share:
            on_share(*stream, event);
            break;
        case EventKind::token:
            on_token(*stream, event.time);
            break;
        case EventKind::preempted:
            preemption_count_++;
            stream->preempted = true;
            note_preemption(event.time);
            break;
        case EventKind::resumed:
            stream->preempted = false;
            note_preemption(event.time);
            break;
        case EventKind::finished:
            stream->finished = true;
            note_preemption(event.time);
            break;
    }
}

RequestRecord::Stream* RequestRecord::find(SeqId seq) {
    const auto found = std::find_if(streams_.begin(), streams_.end(), [&](const Stream& s) { return s.seq == seq; });
    return found == streams_.end() ? nullptr : &*found;
}

void RequestRecord::on_step(const Event& event) {
    // Until its first row all this is queue time: only the newest step is kept, in case the row follows.
    if (!first_scheduled_) steps_.clear();
    StepPart part;
    part.begin = event.begin;
    part.end = event.time;
    part.rows = event.rows_by_phase;
    part.mask = event.mask;
    part.drafting = event.drafting;
    part.drafting_rows = event.drafting_rows;
    steps_.push_back(part);
    last_step_ = event.step;
}

void RequestRecord::on_share(Stream& stream, const Event& event) {
    check(!steps_.empty() && last_step_ == event.step, "a share follows its step");
    if (!first_scheduled_) first_scheduled_ = event.begin;
    StepPart& part = steps_.back();
    part.mine[static_cast<uint8_t>(event.phase)] += event.rows;
    part.recomputed += event.recomputed;
    part.rejected += event.rejected;
    recomputed_ += event.recomputed;
    rejected_ += event.rejected;
    if (event.drafting_rows > 0) {
        part.my_drafting_rows += event.drafting_rows;
        part.my_wasted_rows += event.modelled == 0 ? 0 : std::min(event.drafting_rows, event.rejected);
        modelled_ += event.modelled;
        modelled_rejected_ += event.modelled == 0 ? 0 : event.rejected;
        if (part.drafting_rows > 0) drafting_ += part.drafting / part.drafting_rows * event.drafting_rows;
    }
    stream.step_drafts = stream.step_tokens = 0;
    if (event.phase == Phase::verify) {
        drafted_ += event.rows - 1;
        stream.step_drafts = event.rows - 1 - std::min(event.rejected, event.rows - 1);
    }
    if (event.phase != Phase::prefill) draft_holds_[static_cast<uint8_t>(event.hold)]++;
    stream.cached = std::max(stream.cached, event.cached);
    if (event.position > stream.cached) stream.computed = std::max(stream.computed, event.position - stream.cached);
    if (!stream.prefill_end && event.position >= stream.prompt_tokens) stream.prefill_end = event.time;
}

void RequestRecord::on_token(Stream& stream, Nanos time) {
    if (stream.closed) return;
    if (stream.last_token) token_gaps_.push_back(time - *stream.last_token);
    if (!stream.first_token) stream.first_token = time;
    stream.last_token = time;
    stream.output_tokens++;
    stream.step_tokens++;
}

void RequestRecord::note_preemption(Nanos time) {
    uint32_t live = 0, preempted = 0;
    for (const Stream& stream : streams_) {
        live += !stream.finished;
        preempted += !stream.finished && stream.preempted;
    }
    const bool all = live > 0 && preempted == live;
    if (all && !preempted_since_) preempted_since_ = time;
    if (!all && preempted_since_) {
        preemptions_.push_back({*preempted_since_, time});
        preempted_since_.reset();
    }
}

}  // namespace cadans::metrics
