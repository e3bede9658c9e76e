#include "sched/forecast.h"

#include <algorithm>

#include "sched/chunk.h"
#include "sched/machine_time.h"

namespace cadans::sched {
namespace {

constexpr uint64_t kPicosPerMicro = 1'000'000;

const StepCost& cost_of(const View& view, ModelId model) noexcept {
    static constexpr StepCost kUnknown{};
    return index(model) < view.costs.size() ? view.costs[index(model)] : kUnknown;
}

/// What is left of its prompt, with the machine to itself.
Micros time_to_read(const View& view, const SequenceView& one) noexcept {
    const StepCost& cost = cost_of(view, one.model);
    const uint64_t ps = marginal_ps(cost, one.computed, one.due(), one.score ? one.due() : 1);
    return static_cast<Micros>(ps / StepCost::kWhole * cost.prompt_scale / kPicosPerMicro);
}

Micros time_of_a_word(const View& view, const SequenceView& one) noexcept {
    const StepCost& cost = cost_of(view, one.model);
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

void forecast(const View& view, const Policy& policy, std::vector<Forecast>& out) {
    out.clear();
    const auto runs = static_cast<uint32_t>(view.running.size());
    const auto at = [&](uint32_t i) -> const SequenceView& {
        return i < runs ? view.running[i] : view.waiting[i - runs];
    };
    // Until the line stands, `place` holds the index.
    for (uint32_t i = 0; i < runs + view.waiting.size(); i++) {
        const SequenceView& one = at(i);
        if (i >= runs || one.phase() == Phase::prefill) out.push_back({one.seq, i, view.now, 0, 0});
    }
    std::sort(out.begin(), out.end(), [&](const Forecast& a, const Forecast& b) {
        const SequenceView &first = at(a.place), &second = at(b.place);
        return policy.before == nullptr ? first.arrival < second.arrival : policy.before(view, first, second);
    });

    const Micros writing = time_to_write(view);
    const Micros step = writing == 0 ? 1 : time_for_step(planned_step(view.limits.gap), writing);
    const Micros reading = step - writing;  // of each step; never 0
    Micros work = 0;
    uint32_t waiting = 0;
    for (Forecast& line : out) {
        const bool waits = line.place >= runs;
        const SequenceView& one = at(line.place);
        work += time_to_read(view, one);
        line.place = waits ? waiting : 0;
        waiting += waits;
        // In two parts, so that an hour's work of microseconds does not overflow.
        line.first_token = work / reading * step + work % reading * step / reading;
        const Micros word = std::max(writing, time_of_a_word(view, one));
        const uint32_t words = one.known_max - one.known;
        line.finish = line.first_token + (words == 0 ? 0 : words - 1) * word;
    }
}

}  // namespace cadans::sched
