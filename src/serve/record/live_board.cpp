#include "serve/record/live_board.h"

#include <algorithm>

namespace cadans::serve {

using metrics::RunningTally;

const char* LiveRequest::phase() const noexcept {
    switch (tally.state()) {
        case RunningTally::State::arriving:
        case RunningTally::State::queued:
            return "queue";
        case RunningTally::State::loading:
            return "load";
        case RunningTally::State::preempted:
            return "preempted";
        case RunningTally::State::writing:
            return "writing";
        case RunningTally::State::running:
            break;
    }
    return prefill_end ? "decode" : "prefill";
}

std::vector<Holder> LiveRequest::worst_holders(size_t most) const {
    std::vector<Holder> out = holders;
    std::ranges::stable_sort(out, std::greater<>(), &Holder::total);
    if (out.size() > most) out.resize(most);
    return out;
}

void LiveBoard::add(RequestId request, LiveFacts facts, const std::vector<std::pair<SeqId, uint32_t>>& prompts,
                    Nanos now) {
    forget_ended(now);
    requests_.emplace_back(std::move(facts));
    LiveRequest& live = requests_.back();
    live.tally.enter(RunningTally::State::queued, now);
    live.phase_since = now;
    for (const auto& [seq, tokens] : prompts) {
        live.streams.push_back({.seq = seq, .prompt_tokens = tokens});
        by_seq_.emplace(seq, &live);
    }
    by_request_.emplace(request, &live);
}

void LiveBoard::loading(RequestId request, Nanos now) { enter(request, RunningTally::State::loading, now); }
void LiveBoard::loaded(RequestId request, Nanos now) { enter(request, RunningTally::State::queued, now); }

void LiveBoard::enter(RequestId request, RunningTally::State state, Nanos now) {
    const auto found = by_request_.find(request);
    if (found == by_request_.end() || found->second->ended) return;
    found->second->tally.enter(state, now);
    found->second->phase_since = now;
    found->second->cold = found->second->cold || state == RunningTally::State::loading;
}

LiveRequest* LiveBoard::of(SeqId seq, LiveRequest::Stream** stream) {
    const auto found = by_seq_.find(seq);
    if (found == by_seq_.end()) return nullptr;
    *stream = &*std::ranges::find(found->second->streams, seq, &LiveRequest::Stream::seq);
    return found->second;
}

void LiveBoard::on(const Event& event) {
    if (event.kind == EventKind::step_begin) {
        close_step();
        step_ = event;
        return;
    }
    LiveRequest::Stream* stream = nullptr;
    LiveRequest* live = of(event.seq, &stream);
    if (live == nullptr || live->ended) return;
    switch (event.kind) {
        case EventKind::step_share:
            shares_.push_back({live, stream, event.phase, event.rows});
            if (!live->first_step) live->first_step = event.begin;
            if (live->phase_since < event.begin && live->tally.state() != RunningTally::State::running)
                live->phase_since = event.begin;
            stream->cached = std::max(stream->cached, event.cached);
            stream->position = event.position;
            live->computed_tokens = live->cached_tokens = 0;
            for (const LiveRequest::Stream& each : live->streams) {
                live->cached_tokens += each.cached;
                live->computed_tokens += each.position - std::min(each.cached, each.position);
            }
            break;
        case EventKind::token:
            stream->output++;
            live->output_tokens++;
            written_++;
            if (!live->prefill_end) live->prefill_end = live->phase_since = event.time;
            break;
        case EventKind::preempted:
        case EventKind::resumed:
        case EventKind::finished:
            stream->preempted = event.kind == EventKind::preempted;
            stream->finished = stream->finished || event.kind == EventKind::finished;
            turns_.push_back({live, event.kind, event.time});
            if (!step_) take_turns();
            break;
        default:
            break;
    }
}

void LiveBoard::settled() { close_step(); }

// What happened after the step, though it was told between the shares of it.
void LiveBoard::take_turns() {
    for (const Turn& turn : turns_) {
        LiveRequest& live = *turn.request;
        if (live.ended) continue;
        const bool all_finished = std::ranges::all_of(live.streams, &LiveRequest::Stream::finished);
        const bool all_preempted = std::ranges::all_of(
            live.streams, [](const LiveRequest::Stream& each) { return each.preempted || each.finished; });
        RunningTally::State state = RunningTally::State::running;
        if (all_finished)
            state = RunningTally::State::writing;
        else if (all_preempted)
            state = RunningTally::State::preempted;
        if (state == live.tally.state() || (turn.kind == EventKind::finished && !all_finished)) continue;
        live.tally.enter(state, turn.time);
        live.phase_since = turn.time;
    }
    turns_.clear();
}

void LiveBoard::close_step() {
    if (!step_) return;
    const Event& step = *step_;
    last_step_end_ = step.time;
    for (LiveRequest& live : requests_)
        if (!live.ended) tally_step(live);

    LiveStep shown{.number = index(step.step), .begin = step.begin, .end = step.time, .rows = step.rows_by_phase};
    Work work;
    std::vector<std::string_view> models;
    for (const OpenShare& share : shares_) {
        shown.shares.push_back({share.request->facts.id, share.phase, share.rows});
        const LiveRequest& live = *share.request;
        const bool reads = share.phase == Phase::prefill;
        const uint32_t end = share.stream->computed();
        work += work_of(live.facts.work, end - std::min(share.rows, end), share.rows, reads ? 0 : share.rows);
        if (std::ranges::find(models, live.facts.model) != models.end()) continue;
        models.emplace_back(live.facts.model);
        work.bytes += live.facts.work.weight_bytes + (written_ > 0 ? live.facts.work.head_bytes : 0);
    }
    const uint32_t prompt_rows = step.rows_by_phase[static_cast<size_t>(Phase::prefill)];
    seconds_.step(step.begin, step.time, prompt_rows > 0, work, prompt_rows, written_);
    steps_.push_back(std::move(shown));
    if (steps_.size() > kStepsKept) steps_.pop_front();
    step_.reset();
    shares_.clear();
    written_ = 0;
    take_turns();
}

// Whatever of the step was not its own is put down to those whose rows were in it, by their number.
void LiveBoard::tally_step(LiveRequest& live) {
    const Event& step = *step_;
    metrics::StepPart part{.begin = step.begin, .end = step.time};
    part.rows = step.rows_by_phase;
    uint64_t prefill_rows = 0, decode_rows = 0;
    for (const OpenShare& share : shares_) {
        const bool reads = share.phase == Phase::prefill;
        if (share.request == &live)
            part.mine[static_cast<size_t>(share.phase)] += share.rows;
        else
            (reads ? prefill_rows : decode_rows) += share.rows;
    }
    const metrics::Spent before = live.tally.spent();
    live.tally.step(part, live.facts.cost);
    const metrics::Spent& after = live.tally.spent();
    Nanos prefill = after.others_prefill - before.others_prefill, decode = after.others_decode - before.others_decode;
    if (const Nanos queued = after.queue - before.queue;
        queued > 0 && part.mine == decltype(part.mine){} && prefill_rows + decode_rows > 0) {
        // While it queues, a step of others is what it waits for.
        const Nanos in_step = std::min(queued, step.time - step.begin);
        prefill += in_step * static_cast<Nanos>(prefill_rows) / static_cast<Nanos>(prefill_rows + decode_rows);
        decode += in_step * static_cast<Nanos>(decode_rows) / static_cast<Nanos>(prefill_rows + decode_rows);
    }
    if (prefill + decode == 0) return;
    for (const OpenShare& share : shares_) {
        if (share.request == &live) continue;
        const bool reads = share.phase == Phase::prefill;
        const uint64_t rows = reads ? prefill_rows : decode_rows;
        auto holder = std::ranges::find(live.holders, share.request->facts.id, &Holder::id);
        if (holder == live.holders.end()) holder = live.holders.insert(holder, {.id = share.request->facts.id});
        (reads ? holder->prefill_ns : holder->decode_ns) +=
            (reads ? prefill : decode) * static_cast<Nanos>(share.rows) / static_cast<Nanos>(rows);
    }
}

void LiveBoard::foretold(const std::vector<Forecast>& line) {
    line_ = line;
    for (const Forecast& forecast : line) {
        LiveRequest::Stream* stream = nullptr;
        LiveRequest* live = of(forecast.seq, &stream);
        if (live == nullptr || live->facts.foretold_first_token || forecast.first_token == 0) continue;
        if (live->streams.size() == 1) live->facts.foretold_first_token = forecast.first_token_at();
    }
}

void LiveBoard::flushed(RequestId request, uint32_t tokens, Nanos now, Nanos stall_limit) {
    const auto found = by_request_.find(request);
    if (found == by_request_.end()) return;
    LiveRequest& live = *found->second;
    if (live.last_flush) {
        const Nanos gap = now - *live.last_flush;
        live.last_gap = gap;
        live.max_gap = std::max(live.max_gap.value_or(0), gap);
        live.tokens_flushed_after_first += tokens;
        seconds_.gap(now, gap, gap > stall_limit);
    } else {
        live.first_flush = now;
    }
    live.last_flush = now;
}

void LiveBoard::done(RequestId request, const char* outcome, Nanos now) {
    const auto found = by_request_.find(request);
    if (found == by_request_.end()) return;
    LiveRequest& live = *found->second;
    live.tally.settle(now);
    live.ended = now;
    live.phase_since = now;
    live.outcome = outcome;
}

const LiveRequest* LiveBoard::find(RequestId request) const {
    const auto found = by_request_.find(request);
    return found == by_request_.end() ? nullptr : found->second;
}

const std::list<LiveRequest>& LiveBoard::requests(Nanos now) {
    forget_ended(now);
    // Where no step is to come, time is surely what it seems.
    for (LiveRequest& live : requests_) {
        const RunningTally::State state = live.tally.state();
        if (!live.ended && (state == RunningTally::State::loading || state == RunningTally::State::writing))
            live.tally.settle(now);
    }
    return requests_;
}

void LiveBoard::forget_ended(Nanos now) {
    for (auto at = requests_.begin(); at != requests_.end();) {
        if (!at->ended || now - *at->ended < kShownAfterEnd) {
            ++at;
            continue;
        }
        for (const LiveRequest::Stream& stream : at->streams) by_seq_.erase(stream.seq);
        std::erase_if(by_request_, [&](const auto& entry) { return entry.second == &*at; });
        at = requests_.erase(at);
    }
}

}  // namespace cadans::serve
