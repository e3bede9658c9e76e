#include "sched/forecast.h"

#include <algorithm>

#include "sched/chunk.h"
#include "sched/machine_time.h"

namespace cadans::sched {
namespace {

constexpr uint32_t kShortestNewcomer = 32;  // tokens; shorter prompts are told the same

/// What is left of its prompt, with the machine to itself.
Micros time_to_read(const View& view, const SequenceView& one) noexcept {
    return reading_time(view.cost_of(one.model), one.computed, one.due(), one.score ? one.due() : 1);
}

Micros time_of_a_word(const View& view, const SequenceView& one) noexcept {
    const StepCost& cost = view.cost_of(one.model);
    StepShape shape;
    cost.add(shape, one.known, 1, 1);
    return cost.predict(shape);
}

}  // namespace

Micros time_to_write(const View& view) noexcept {
    Micros sum = 0;
    for (uint16_t m = 0; m < view.costs.size(); m++) {
        StepShape shape;
        for (const SequenceView& one : view.running) {
            if (one.model == ModelId{m} && one.phase() != Phase::prefill) view.costs[m].add(shape, one.computed, 1, 1);
        }
        sum += view.costs[m].predict(shape);
    }
    return sum;
}

namespace {

/// How the machine's time goes: while prompts are read, steps of `step` of which words take `writing`.
struct Pace {
    Micros writing = 0, step = 0;

    static Pace of(const View& view) noexcept {
        const Micros writing = time_to_write(view);
        return {writing, writing == 0 ? 1 : time_for_step(planned_step(view.limits.gap, view.margin), writing)};
    }
    /// In two parts, so that an hour's work of microseconds does not overflow.
    Micros to_read(Micros work) const noexcept {
        const Micros reading = step - writing;  // of each step; never 0
        return work / reading * step + work % reading * step / reading;
    }
    /// Words that come while others read for `busy`, then undisturbed.
    Micros to_write(Micros words, Micros busy) const noexcept {
        const Micros slow = std::min(words, writing == 0 ? 0 : busy / step);
        return slow * step + (words - slow) * writing;
    }
};

SequenceView newcomer(const View& view, ModelId model, uint32_t prompt_tokens) noexcept {
    SequenceView one;
    one.model = model;
    one.arrival = UINT64_MAX;
    one.admitted = view.now;
    one.prompt = one.known = prompt_tokens;
    one.known_max = prompt_tokens + 1;
    return one;
}

}  // namespace

void forecast(const View& view, std::span<const ModelFacts> models, const Policy& policy, Outlook& out) {
    out.line.clear();
    out.newcomers.clear();
    out.made = view.now;
    out.first_end.reset();
    const auto runs = static_cast<uint32_t>(view.running.size());
    const auto at = [&](uint32_t i) -> const SequenceView& {
        return i < runs ? view.running[i] : view.waiting[i - runs];
    };
    const auto goes_before = [&](const SequenceView& first, const SequenceView& second) {
        return policy.before == nullptr ? first.arrival < second.arrival : policy.before(view, first, second);
    };
    // Until all is told, `place` holds the index.
    for (uint32_t i = 0; i < runs + view.waiting.size(); i++) {
        const SequenceView& one = at(i);
        if (i >= runs || one.phase() == Phase::prefill) out.line.push_back({one.seq, i, view.now, 0, 0});
    }
    std::sort(out.line.begin(), out.line.end(),
              [&](const Forecast& a, const Forecast& b) { return goes_before(at(a.place), at(b.place)); });

    const auto ends = [&out](Micros end) { out.first_end = std::min(end, out.first_end.value_or(end)); };
    const Pace pace = Pace::of(view);
    Micros work = 0;
    for (Forecast& line : out.line) {
        const SequenceView& one = at(line.place);
        work += time_to_read(view, one);
        line.first_token = pace.to_read(work);
        const Micros word = std::max(pace.writing, time_of_a_word(view, one));
        const uint32_t words = one.known_max - one.known;
        line.finish = line.first_token + (words == 0 ? 0 : words - 1) * word;
        if (line.finish > 0) ends(line.finish);
    }
    for (const SequenceView& one : view.running)
        if (one.phase() != Phase::prefill && pace.writing > 0)
            ends(pace.to_write(one.known_max - one.known, pace.to_read(work)));

    // One who comes amid a step is heard at its end: half a step later, on the average.
    const Micros longest = pace.writing > 0 ? pace.step : planned_step(view.limits.gap, view.margin);
    const Micros step_in_flight = view.running.empty() ? 0 : std::min(longest, pace.writing + work) / 2;
    for (uint16_t m = 0; m < models.size(); m++) {
        for (uint32_t tokens = kShortestNewcomer;; tokens *= 2) {
            tokens = std::min(tokens, models[m].context_tokens);
            const SequenceView one = newcomer(view, ModelId{m}, tokens);
            const auto behind = std::partition_point(out.line.begin(), out.line.end(), [&](const Forecast& line) {
                return !goes_before(one, at(line.place));
            });
            NewcomerForecast told{.model = ModelId{m}, .prompt_tokens = tokens};
            told.place = static_cast<uint32_t>(
                std::count_if(out.line.begin(), behind, [runs](const Forecast& line) { return line.place >= runs; }));
            const Micros reading = pace.to_read(time_to_read(view, one));
            if (reading > 0)
                told.first_token =
                    step_in_flight + (behind == out.line.begin() ? 0 : std::prev(behind)->first_token) + reading;
            told.word = std::max(pace.writing, time_of_a_word(view, one));
            out.newcomers.push_back(told);
            if (tokens >= models[m].context_tokens) break;
        }
    }

    uint32_t waiting = 0;
    for (Forecast& line : out.line) {
        const bool waits = line.place >= runs;
        line.place = waits ? waiting : 0;
        waiting += waits;
    }
}

}  // namespace cadans::sched
