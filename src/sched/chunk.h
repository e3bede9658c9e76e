// How many prompt rows a step should take: chosen by predicted time.
#pragma once

#include <cstdint>

#include "flow/step_cost.h"
#include "sched/limits.h"

namespace cadans::sched {

/// A step as it is being put together, for one model.
struct StepSoFar {
    const StepCost* cost = nullptr;
    StepShape shape;
    Micros others = 0;  ///< predicted time of other models in the same step

    Micros predicted() const noexcept { return others + cost->predict(shape); }
    /// With `rows` rows from position `first` on, `logits` of them through the head.
    Micros predicted_with(uint32_t first, uint32_t rows, uint32_t logits) const noexcept {
        StepShape more = shape;
        cost->add(more, first, rows, logits);
        return others + cost->predict(more);
    }
};

/// One who wants rows.
struct Wish {
    uint32_t first = 0;  ///< position of the next row
    uint32_t most = 0;   ///< rows it could have, at least 1
    uint32_t due = 0;    ///< rows to the end of what is known: the last one is drawn from
    bool score = false;  ///< all of them need logits

    uint32_t logits(uint32_t rows) const noexcept { return score ? rows : (rows == due ? 1 : 0); }
};

/// The most rows, at most wish.most, with which the step is predicted to end within `within`. 0 if not even one.
/// Cost: a binary search.
uint32_t largest_chunk(const StepSoFar& step, const Wish& wish, Micros within) noexcept;

/// The fewest prompt rows, at most max_rows, whose rate in a step of their own is `percent` of that of max_rows. The
/// keys before them cost the same however they are cut, so they are left out. At least 1.
uint32_t smallest_good_chunk(const StepCost& cost, uint32_t max_rows, uint32_t percent) noexcept;

/// What a machine can promise.
struct Promise {
    Micros floor = 0;             ///< gap that lets a step hold the decodes given and a chunk of 90 % of the best rate
    Micros gap = 0;               ///< what is promised: the gap asked for, or more where decodes alone need it
    uint32_t floor_chunk = 0;     ///< that chunk
    uint32_t chunk = 0;           ///< prompt rows of a step planned for the gap, nothing before them
    uint32_t rate_percent = 100;  ///< prefill rate with that chunk beside these decodes, of the rate that an unhindered
                                  ///< prompt has in the time that decodes leave
};

/// `decodes` streams with `keys` keys each write; one prompt comes. Cost: two binary searches.
Promise promise_for(const StepCost& cost, const SchedulerLimits& limits, uint32_t decodes, uint32_t keys) noexcept;

/// What a step beside streams is planned to take: so much less than the gap that nine of ten steps keep it. Less would
/// make steps so short that what each costs anyway delays the prompt.
constexpr Micros planned_step(Micros gap, uint32_t margin) noexcept {
    return gap * StepCost::kWhole / (StepCost::kWhole + margin);
}

/// The time for a step in which decodes alone take `decode`: the gap, and where that leaves less than a tenth of
/// the machine to prompts, so much more.
constexpr Micros time_for_step(Micros gap, Micros decode) noexcept {
    const Micros least = decode + (decode + 8) / 9;
    return gap > least ? gap : least;
}

}  // namespace cadans::sched
