#include "serve/record/seconds.h"

#include <algorithm>

namespace cadans::serve {

Second& Seconds::at(int64_t number) {
    auto place = std::lower_bound(seconds_.begin(), seconds_.end(), number,
                                  [](const Second& second, int64_t n) { return second.number < n; });
    if (place == seconds_.end() || place->number != number) {
        Second fresh;
        fresh.number = number;
        place = seconds_.insert(place, std::move(fresh));
    }
    const int64_t newest = seconds_.back().number;
    Second& found = *place;
    // What is dropped is older than what was asked for: references into a deque stay good at its other end.
    while (seconds_.front().number < std::min(newest - kKept, number)) seconds_.pop_front();
    return found;
}

void Seconds::step(Nanos begin, Nanos end, bool reads_prompts, const Work& work, uint64_t prefill_tokens,
                   uint64_t output_tokens) {
    if (end <= begin) return;
    const auto whole = static_cast<double>(end - begin);
    for (int64_t number = begin / kNanosPerSecond; number * kNanosPerSecond < end; number++) {
        const Nanos from = std::max(begin, number * kNanosPerSecond);
        const Nanos to = std::min(end, (number + 1) * kNanosPerSecond);
        Second& second = at(number);
        StepsOfAKind& kind = reads_prompts ? second.prefill : second.decode;
        const double share = static_cast<double>(to - from) / whole;
        kind.ns += to - from;
        kind.work += {work.operations * share, work.bytes * share};
    }
    Second& last = at((end - 1) / kNanosPerSecond);
    last.steps++;
    last.prefill_tokens += prefill_tokens;
    last.output_tokens += output_tokens;
}

void Seconds::gap(Nanos end, Nanos length, bool stalled) {
    Second& second = at(end / kNanosPerSecond);
    second.gaps.push_back(length);
    second.stalls += stalled;
}

Second Seconds::of(int64_t number) const {
    const auto place = std::lower_bound(seconds_.begin(), seconds_.end(), number,
                                        [](const Second& second, int64_t n) { return second.number < n; });
    if (place != seconds_.end() && place->number == number) return *place;
    Second empty;
    empty.number = number;
    return empty;
}

}  // namespace cadans::serve
