#include "sched/chunk.h"

#include <algorithm>

namespace cadans::sched {
namespace {

/// The largest n in [1, most] for which good(n), or 0; good(n) implies good(n - 1).
template <class Good>
uint32_t largest(uint32_t most, Good&& good) noexcept {
    uint32_t low = 0, high = most;
    while (low < high) {
        const uint32_t middle = low + (high - low + 1) / 2;
        if (good(middle)) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    return low;
}

/// Picoseconds of a step with `rows` prompt rows beside `shape`, without their keys.
uint64_t bare_ps(const StepCost& cost, StepShape shape, uint32_t rows) noexcept {
    shape.rows += rows;
    return cost.unscaled_ps(shape);
}

}  // namespace

uint32_t largest_chunk(const StepSoFar& step, const Wish& wish, Micros within) noexcept {
    return largest(wish.most,
                   [&](uint32_t rows) { return step.predicted_with(wish.first, rows, wish.logits(rows)) <= within; });
}

uint32_t smallest_good_chunk(const StepCost& cost, uint32_t max_rows, uint32_t percent) noexcept {
    const uint64_t best = bare_ps(cost, {}, max_rows);
    // The rate of n rows is n / time(n), so too slow is: n * time(max) * 100 < percent * max * time(n).
    const auto too_slow = [&](uint32_t n) {
        using Wide = unsigned __int128;
        return Wide{best} * n * 100 < Wide{bare_ps(cost, {}, n)} * max_rows * percent;
    };
    return std::min(max_rows, 1 + largest(max_rows, too_slow));
}

Promise promise_for(const StepCost& cost, const SchedulerLimits& limits, uint32_t decodes, uint32_t keys) noexcept {
    StepSoFar step{&cost, {}, 0};
    for (uint32_t i = 0; i < decodes; i++) cost.add(step.shape, keys, 1, 1);
    const uint32_t most = std::max(1u, limits.max_rows - std::min(limits.max_rows - 1, decodes));
    Promise promise;
    promise.floor_chunk = smallest_good_chunk(cost, most, 90);
    const Micros floor = step.predicted_with(0, promise.floor_chunk, 0);
    // planned_step() of it is that step.
    promise.floor = floor + (floor * kUsualMargin + StepCost::kWhole - 1) / StepCost::kWhole;
    promise.gap = time_for_step(limits.gap, step.predicted());
    const Wish wish{0, most, most + 1, false};
    const Micros within = time_for_step(planned_step(limits.gap, kUsualMargin), step.predicted());
    promise.chunk = std::max(1u, largest_chunk(step, wish, within));
    // Time that a chunk adds to the decodes, against the same rows at the best rate.
    const Micros added = step.predicted_with(0, promise.chunk, 0) - step.predicted();
    const Micros best = cost.predict({.rows = most, .logits_rows = 0, .prompt_context = 1, .decode_context = 0});
    if (added > 0) {
        const auto percent =
            static_cast<uint64_t>(best) * promise.chunk * 100 / (uint64_t{most} * static_cast<uint64_t>(added));
        promise.rate_percent = static_cast<uint32_t>(std::min<uint64_t>(100, percent));
    }
    return promise;
}

}  // namespace cadans::sched
