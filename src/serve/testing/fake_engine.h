// An engine for the doors' tests: no model, no scheduler, the same inbox and the same events.
#pragma once

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "runtime/fanout.h"
#include "runtime/inbox.h"

namespace cadans::serve {

/// Every sequence answers with the script and an end token, or, without a script, with small letters that are a hash of
/// its history. Thread-safe setters; the engine's own thread does the rest.
class FakeEngine {
  public:
    FakeEngine(runtime::Inbox& inbox, runtime::Fanout& fanout) : inbox_(inbox), fanout_(fanout) {
        thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
    }
    ~FakeEngine() {
        thread_.request_stop();
        inbox_.wake();
    }

    std::vector<TokenId> script;  ///< set before requests come
    TokenId end{};
    std::atomic<Nanos> step_time{0};          ///< each step takes so long
    std::atomic<bool> held{false};            ///< while true nobody gets a step
    std::atomic<bool> fails{false};           ///< sequences end with `error` at their third token
    std::atomic<uint32_t> prefill_chunk{64};  ///< prompt tokens a step
    std::atomic<uint32_t> running{0};
    std::atomic<uint64_t> tokens{0}, admitted{0}, cancelled{0};

  private:
    struct Live {
        SequenceRequest request;
        uint32_t computed = 0;
        uint32_t drawn = 0;
        uint64_t hash = 0;
    };

    void run(const std::stop_token& stop) {
        while (!stop.stop_requested()) {
            inbox_.wait(live_.empty() || held ? 5 * kNanosPerMilli : 0);
            hear();
            if (!live_.empty() && !held) step();
            inbox_.ended(ended_, steady_now());
            ended_ = 0;
            running = static_cast<uint32_t>(live_.size());
            if (events_.empty()) continue;
            Occupancy occupancy;
            occupancy.running = running.load();
            fanout_.publish(events_, occupancy);
        }
    }

    void hear() {
        inbox_.take(commands_);
        for (runtime::Command& command : commands_) {
            if (command.kind == runtime::Command::Kind::admit) {
                ++admitted;
                live_.push_back({std::move(command.request), 0, 0, 0});
                live_.back().hash = live_.back().request.sampling.seed + live_.back().request.sampling.choice;
                continue;
            }
            for (size_t i = 0; i < live_.size();) {
                if (command.kind == runtime::Command::Kind::cancel_all || live_[i].request.seq == command.seq) {
                    ++cancelled;
                    finish(i, FinishReason::cancelled);
                } else {
                    ++i;
                }
            }
        }
    }

    void step() {
        const Nanos begin = steady_now();
        if (step_time > 0) std::this_thread::sleep_for(std::chrono::nanoseconds(step_time.load()));
        const Nanos end_time = steady_now();
        Event whole;
        whole.kind = EventKind::step_begin;
        whole.step = StepId{++steps_};
        whole.begin = begin;
        whole.time = end_time;
        events_.push_back(whole);
        for (size_t i = 0; i < live_.size();) {
            const size_t before = live_.size();
            advance(i, begin, end_time);
            if (live_.size() == before) ++i;
        }
    }

    void advance(size_t i, Nanos begin, Nanos time) {
        Live& live = live_[i];
        const auto prompt = static_cast<uint32_t>(live.request.prompt.size());
        Event share = event_of(live, EventKind::step_share, time);
        share.begin = begin;
        if (live.computed < prompt) {
            share.rows = std::min<uint32_t>(prefill_chunk, prompt - live.computed);
            live.computed += share.rows;
            share.phase = Phase::prefill;
        } else {
            share.rows = 1;
            share.phase = Phase::decode;
        }
        share.position = live.computed;
        const size_t step_at = events_.size();
        for (size_t back = step_at; back-- > 0;)
            if (events_[back].kind == EventKind::step_begin) {
                events_[back].rows_by_phase[static_cast<size_t>(share.phase)] += share.rows;
                break;
            }
        events_.push_back(share);
        if (live.computed < prompt) return;
        if (live.drawn == 0 && live.request.score_prompt) score_prompt(live, time);
        if (live.request.embedding != nullptr)  // 3, 4, and then how many tokens, so that it can be told from others
            for (size_t d = 0; d < live.request.embedding->vector.size(); ++d)
                live.request.embedding->vector[d] = d == 0 ? 3.0F : d == 1 ? 4.0F : 0.0F;
        if (live.request.max_new_tokens == 0) return finish(i, FinishReason::length);
        if (fails && live.drawn == 3) return finish(i, FinishReason::error);
        draw(i, time);
    }

    void score_prompt(const Live& live, Nanos time) {
        for (uint32_t p = 1; p < live.request.prompt.size(); ++p) {
            Event event = event_of(live, EventKind::prompt_score, time);
            event.position = p;
            event.score = score_of(live.request, live.request.prompt[p], -0.1F * static_cast<float>(p));
            events_.push_back(event);
        }
    }

    void draw(size_t i, Nanos time) {
        Live& live = live_[i];
        TokenId token = end;
        if (script.empty()) {
            live.hash = mix64(live.hash ^ index(live.request.prompt.back()));
            token = TokenId{static_cast<uint32_t>('a' + live.hash % 26)};
        } else if (live.drawn < script.size()) {
            token = script[live.drawn];
        }
        Event event = event_of(live, EventKind::token, time);
        event.position = static_cast<uint32_t>(live.request.prompt.size()) + live.drawn;
        event.score = score_of(live.request, token, -0.3F);
        events_.push_back(event);
        ++live.drawn;
        ++tokens;
        const auto& ends = live.request.end_tokens;
        if (std::binary_search(ends.begin(), ends.end(), token)) return finish(i, FinishReason::stop);
        if (live.drawn == live.request.max_new_tokens) finish(i, FinishReason::length);
    }

    static TokenScore score_of(const SequenceRequest& request, TokenId token, float logprob) {
        TokenScore score;
        score.token = token;
        score.logprob = logprob;
        score.top_count = request.sampling.top_logprobs;
        for (uint8_t k = 0; k < score.top_count; ++k)
            score.top[k] = {k == 0 ? token : TokenId{uint32_t{'A'} + k}, logprob - static_cast<float>(k)};
        return score;
    }

    Event event_of(const Live& live, EventKind kind, Nanos time) const {
        Event event;
        event.kind = kind;
        event.seq = live.request.seq;
        event.request = live.request.request;
        event.step = StepId{steps_};
        event.time = time;
        return event;
    }

    void finish(size_t i, FinishReason reason) {
        Event event = event_of(live_[i], EventKind::finished, steady_now());
        event.reason = reason;
        events_.push_back(event);
        live_.erase(live_.begin() + static_cast<std::ptrdiff_t>(i));
        ++ended_;
    }

    runtime::Inbox& inbox_;
    runtime::Fanout& fanout_;
    std::vector<runtime::Command> commands_;
    std::vector<Live> live_;
    std::vector<Event> events_;
    uint64_t steps_ = 0;
    uint32_t ended_ = 0;
    std::jthread thread_;  // last: it uses the others
};

}  // namespace cadans::serve
