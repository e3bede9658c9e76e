#include "metrics/running_tally.h"

#include <gtest/gtest.h>

#include <random>

namespace cadans::metrics {
namespace {

StepPart part(Nanos begin, Nanos end, uint32_t all_prefill, uint32_t my_prefill, uint32_t all_decode,
              uint32_t my_decode) {
    StepPart out{.begin = begin, .end = end};
    out.rows = {all_prefill, all_decode, 0};
    out.mine = {my_prefill, my_decode, 0};
    return out;
}

TEST(running_tally, tells_queue_own_steps_and_others_apart) {
    RunningTally tally(100);
    tally.enter(RunningTally::State::queued, 110);
    tally.step(part(90, 150, 10, 0, 0, 0));  // ran before it came
    tally.step(part(150, 200, 40, 30, 10, 0));
    tally.step(part(205, 255, 50, 0, 0, 0));
    tally.step(part(255, 265, 0, 0, 4, 1));
    const Spent& spent = tally.spent();
    EXPECT_EQ(spent.other, 10 + 5);
    EXPECT_EQ(spent.queue, 40);
    EXPECT_EQ(spent.own_prefill, 30);
    EXPECT_EQ(spent.others_prefill, 10 + 50);
    EXPECT_EQ(spent.own_decode, 2);  // a quarter of 10; what rounding leaves goes to the largest part
    EXPECT_EQ(spent.others_decode, 10 + 8);
    EXPECT_EQ(spent.total(), 265 - 100);
}

// Method: random lives; after every event the parts have not shrunk and sum to what is told of.
TEST(running_tally, parts_only_grow_and_always_sum) {
    std::mt19937_64 random(3);
    for (int life = 0; life < 300; life++) {
        RunningTally tally(1000);
        Nanos now = 1000;
        Spent before;
        for (int event = 0; event < 200; event++) {
            const Nanos begin = now + static_cast<Nanos>(random() % 40) - 10;
            now = begin + static_cast<Nanos>(random() % 60);
            switch (random() % 5) {
                case 0:
                    tally.enter(static_cast<RunningTally::State>(random() % 5), now);
                    break;
                case 1:
                    tally.settle(now);
                    break;
                default: {
                    StepPart step = part(begin, now, 0, 0, 0, 0);
                    for (uint32_t phase = 0; phase < kPhases; phase++) {
                        step.rows[phase] = static_cast<uint32_t>(random() % 5);
                        if (random() % 2 == 0)
                            step.mine[phase] = static_cast<uint32_t>(random() % (step.rows[phase] + 1));
                    }
                    step.recomputed = static_cast<uint32_t>(random() % 3);
                    tally.step(step);
                }
            }
            const Spent& spent = tally.spent();
            ASSERT_EQ(spent.total(), tally.until() - 1000);
            for (const auto which : {&Spent::load, &Spent::queue, &Spent::own_prefill, &Spent::own_decode,
                                     &Spent::others_prefill, &Spent::others_decode, &Spent::preempted, &Spent::other})
                ASSERT_GE(spent.*which, before.*which);
            before = spent;
        }
    }
}

}  // namespace
}  // namespace cadans::metrics
