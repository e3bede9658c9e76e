// Goal: predictions follow the machine, whatever it does, and nobody's debt is forgotten. Method: steps measured as
// another cost says.
#include "sched/machine_time.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "sched/testing/slow_machine.h"

namespace cadans::sched {
namespace {

constexpr Micros kSecond = 1'000'000;

TEST(machine_time, predictions_follow_what_is_measured_and_stay_in_bounds) {
    MachineTime time({slow_machine()});
    StepPlan plan;
    plan.items.push_back({});
    plan.items[0].first = 100;
    plan.items[0].count = 1;
    time.planned(plan);
    const Micros first = time.predicted();
    for (int i = 0; i < 200; i++) {
        time.planned(plan);
        time.done(plan, first * 3 / 2 * kNanosPerMicro);
    }
    EXPECT_NEAR(static_cast<double>(time.predict(plan)), static_cast<double>(first) * 1.5,
                0.02 * static_cast<double>(first));
    EXPECT_EQ(time.costs()[0].prompt_scale, StepCost::kWhole) << "steps of single rows say nothing of prompts";
    for (int i = 0; i < 1000; i++) {
        time.planned(plan);
        time.done(plan, 3600 * kNanosPerSecond);
    }
    EXPECT_EQ(time.costs()[0].decode_scale, StepCost::kMostScale);
    time.planned(plan);
    const Micros before = time.predict(plan);
    time.done(plan, 1);
    EXPECT_GT(time.predict(plan), before * 9 / 10) << "one odd step moves little";
    time.done(plan, -5);
}

/// One step of a prompt of which `first` tokens are computed: predicted by `time`, measured as `truth` says.
void read_step(MachineTime& time, const StepCost& truth, uint32_t first, uint32_t rows, Nanos more = 0) {
    StepPlan plan;
    plan.items.push_back({});
    plan.items[0].first = first;
    plan.items[0].count = rows;
    time.planned(plan);
    time.done(plan, truth.predict(truth.shape_of(plan)) * kNanosPerMicro + more);
}

TEST(machine_time, keys_and_rows_of_prompts_are_told_apart) {
    StepCost truth = slow_machine();
    truth.row_ps = truth.row_ps * 5 / 4;
    truth.prompt_key_ps = truth.prompt_key_ps * 3 / 5;
    MachineTime time({slow_machine()});
    for (int prompt = 0; prompt < 4; prompt++)
        for (uint32_t first = 0; first < 8000; first += 64) read_step(time, truth, first, 64);
    // One scale for both would be off by half at one of the ends.
    for (const uint32_t first : {0U, 1000U, 8000U}) {
        StepShape shape;
        truth.add(shape, first, 64, 0);
        const auto right = static_cast<double>(truth.predict(shape));
        EXPECT_NEAR(static_cast<double>(time.costs()[0].predict(shape)), right, 0.12 * right) << first;
    }
}

TEST(machine_time, the_margin_is_what_one_step_in_ten_exceeds) {
    const StepCost truth = slow_machine();
    MachineTime time({truth});
    for (int i = 0; i < 500; i++) read_step(time, truth, 0, 64);
    EXPECT_EQ(time.margin(), kLeastMargin) << "a steady machine";
    StepShape shape;
    truth.add(shape, 0, 64, 0);
    const Nanos usual = truth.predict(shape) * kNanosPerMicro;
    int late = 0;
    for (int i = 0; i < 4000; i++) {
        const auto more = static_cast<Nanos>(mix64(static_cast<uint64_t>(i)) % 140) * usual / 1000;
        const Micros planned = time.costs()[0].predict(shape) * (1024 + time.margin()) / 1024;
        late += i >= 2000 && (usual + more) / kNanosPerMicro > planned;
        read_step(time, truth, 0, 64, more);
    }
    EXPECT_GT(late, 100) << "of 2,000, up to a seventh longer than usual";
    EXPECT_LT(late, 320);
    for (int i = 0; i < 100; i++) read_step(time, truth, 0, 64, (i % 2) * 10 * usual);
    EXPECT_EQ(time.margin(), kMostMargin);
}

TEST(machine_time, who_comes_starts_at_most_so_far_ahead_and_is_remembered) {
    MachineTime time({slow_machine()});
    Account* busy = time.join(1);
    busy->used = 1000 * kSecond;
    Account* fresh = time.join(2);
    EXPECT_EQ(time.lead(*busy), MachineTime::kForgiven);
    EXPECT_EQ(time.lead(*fresh), 0);
    time.leave(busy);
    busy = time.join(1);
    EXPECT_EQ(time.lead(*busy), MachineTime::kForgiven) << "leaving for a moment pays no debt";
    for (uint64_t scope = 100; scope < 2000; scope++) time.leave(time.join(scope));
    EXPECT_EQ(time.lead(*busy), MachineTime::kForgiven);
}

}  // namespace
}  // namespace cadans::sched
