// Goal: chunks are as large as predictions allow, and a promise names its price. Method: each answer against its
// neighbour.
#include "sched/chunk.h"

#include <gtest/gtest.h>

#include "sched/testing/slow_machine.h"

namespace cadans::sched {
namespace {

TEST(chunk, is_the_largest_that_fits) {
    const StepCost cost = slow_machine();
    StepSoFar step{&cost, {}, 0};
    cost.add(step.shape, 100, 1, 1);
    for (const Micros within : {40'000, 100'000, 500'000, 5'000'000}) {
        const Wish wish{700, 512, 2000, false};
        const uint32_t rows = largest_chunk(step, wish, within);
        if (rows > 0) {
            EXPECT_LE(step.predicted_with(700, rows, 0), within);
        }
        if (rows < 512) {
            EXPECT_GT(step.predicted_with(700, rows + 1, 0), within);
        }
    }
}

TEST(chunk, a_good_chunk_reaches_its_rate_and_one_less_does_not) {
    const StepCost cost = slow_machine();
    const auto rate = [&](uint32_t n) {
        return 1e12 * n / static_cast<double>(std::max(cost.weights_ps, cost.row_ps * n) + cost.step_ps);
    };
    for (const uint32_t percent : {50u, 90u, 98u, 99u}) {
        const uint32_t n = smallest_good_chunk(cost, 512, percent);
        EXPECT_GE(rate(n), rate(512) * percent / 100);
        if (n > 1) {
            EXPECT_LT(rate(n - 1), rate(512) * percent / 100);
        }
    }
}

TEST(promise, a_gap_under_the_floor_has_a_price) {
    const StepCost cost = slow_machine();
    SchedulerLimits limits{.max_rows = 528, .max_running = 16, .prefill_chunk = 256, .gap = 400'000};
    const Promise wide = promise_for(cost, limits, 1, 0);
    EXPECT_GE(wide.rate_percent, 90u);
    EXPECT_LT(wide.floor, 400'000);
    limits.gap = 40'000;
    const Promise narrow = promise_for(cost, limits, 3, 0);
    EXPECT_GT(narrow.floor, narrow.gap);
    EXPECT_LT(narrow.chunk, wide.chunk);
    limits.gap = 1;
    EXPECT_GT(promise_for(cost, limits, 3, 0).gap, 30'000) << "a promise that can be kept";
}

}  // namespace
}  // namespace cadans::sched
