// Goal: predictions are the documented formula. Method: by hand, and against a slow sum over rows.
#include "flow/step_cost.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace cadans {
namespace {

TEST(step_cost, few_rows_wait_for_weights_and_many_for_arithmetic) {
    StepCost cost;
    cost.weights_ps = 10'000'000;
    cost.row_ps = 1'000'000;
    StepShape shape;
    EXPECT_EQ(cost.predict(shape), 0) << "no rows, no step";
    cost.add(shape, 0, 1, 0);
    EXPECT_EQ(cost.predict(shape), 10);
    shape = {};
    cost.add(shape, 0, 10, 0);
    EXPECT_EQ(cost.predict(shape), 10);
    shape = {};
    cost.add(shape, 0, 11, 0);
    EXPECT_EQ(cost.predict(shape), 11);
}

TEST(step_cost, every_term_counts_what_it_says) {
    StepCost cost;
    cost.step_ps = 1;
    cost.prompt_key_ps = 10;
    cost.decode_key_ps = 1'000;
    cost.logits_ps = 1'000'000;
    StepShape shape;
    cost.add(shape, 2, 2, 0);  // rows at 2 and 3 look at 3 and 4 keys
    cost.add(shape, 4, 1, 1);  // a row at 4 looks at 5
    EXPECT_EQ(cost.unscaled_ps(shape), 1u + 10 * 7 + 1'000 * 5 + 1'000'000);
}

TEST(step_cost, windowed_layers_see_their_window) {
    StepCost cost;
    cost.window_tokens = 50;
    cost.window_share = 768;
    for (uint64_t seed = 0; seed < 200; seed++) {
        const uint64_t first = mix64(seed) % 200, rows = 1 + mix64(seed + 1000) % 100;
        uint64_t all = 0, near = 0;
        for (uint64_t p = first; p < first + rows; p++) {
            all += p + 1;
            near += std::min<uint64_t>(p + 1, 50);
        }
        EXPECT_EQ(cost.keys(first, rows), (all * 256 + near * 768) / 1024) << first << " + " << rows;
    }
}

TEST(step_cost, steps_of_single_rows_and_of_prompts_have_scales_of_their_own) {
    StepCost cost;
    cost.step_ps = 1'000'000'000;
    cost.decode_scale = 2048;
    cost.prompt_scale = 512;
    StepShape decode, prompt;
    cost.add(decode, 9, 1, 1);
    cost.add(prompt, 9, 2, 1);
    EXPECT_EQ(cost.predict(decode), 2000);
    EXPECT_EQ(cost.predict(prompt), 500);
    cost.prompt_key_ps = 1'000'000;
    cost.prompt_key_scale = 4096;
    EXPECT_EQ(cost.predict(prompt), 500 + 4 * (10 + 11)) << "its keys go by a scale of their own";
}

TEST(step_cost, the_largest_step_at_the_bounds_does_not_overflow) {
    StepCost cost;
    cost.weights_ps = cost.row_ps = cost.step_ps = cost.logits_ps = StepCost::kMostPerRow;
    cost.prompt_key_ps = cost.decode_key_ps = StepCost::kMostPerKey;
    cost.prompt_scale = cost.prompt_key_scale = StepCost::kMostScale;
    StepShape shape;
    cost.add(shape, (1u << 20) - (1u << 12), 1u << 12, 1u << 12);
    EXPECT_GT(cost.unscaled_ps(shape), uint64_t{1} << 59);
    EXPECT_GT(cost.predict(shape), Micros{1} << 41);
}

}  // namespace
}  // namespace cadans
