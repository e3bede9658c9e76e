// Goal: what is forecast is what happens when nothing else does. Method: lines by hand.
#include "sched/forecast.h"

#include <gtest/gtest.h>

#include "sched/cadence.h"
#include "sched/static_chunk.h"

namespace cadans::sched {
namespace {

SequenceView prompt(uint64_t arrival, uint32_t tokens, uint32_t max_new) {
    SequenceView one;
    one.seq = SeqId{arrival + 1};
    one.arrival = arrival;
    one.prompt = one.known = tokens;
    one.known_max = tokens + max_new;
    return one;
}

struct Line {
    std::vector<SequenceView> running, waiting;
    std::vector<StepCost> costs{StepCost{}};
    SchedulerLimits limits{.max_rows = 80, .max_running = 16, .prefill_chunk = 64, .gap = 100'000};

    Line() {
        costs[0].weights_ps = 20'000'000'000;  // 20 ms a word
        costs[0].row_ps = 10'000'000'000;      // 10 ms a prompt token
    }
    std::vector<Forecast> told(const Policy& policy) const {
        std::vector<Forecast> out;
        forecast({5, limits, running, waiting, costs}, policy, out);
        return out;
    }
};

TEST(forecast, one_alone_takes_its_time_alone) {
    Line line;
    line.running = {prompt(0, 100, 11)};
    const auto told = line.told(static_chunk());
    ASSERT_EQ(told.size(), 1u);
    EXPECT_EQ(told[0].first_token, 1'000'000);
    EXPECT_EQ(told[0].finish, 1'000'000 + 10 * 20'000);
    EXPECT_EQ(told[0].place, 0u);
    EXPECT_EQ(told[0].made, 5);
}

TEST(forecast, words_of_others_leave_a_part_of_the_gap) {
    Line line;
    SequenceView writer = prompt(0, 50, 100);
    writer.known = 51;
    writer.computed = 50;
    line.running = {writer, prompt(1, 100, 1)};
    EXPECT_EQ(line.told(static_chunk())[0].first_token, 1'000'000 * 90 / 70) << "70 ms of each 90";
}

TEST(forecast, places_count_those_who_wait_before_in_the_policy_s_order) {
    Line line;
    line.running = {prompt(0, 100, 1)};
    line.waiting = {prompt(1, 600, 1), prompt(2, 10, 1)};
    const auto by_arrival = line.told(static_chunk());
    ASSERT_EQ(by_arrival.size(), 3u);
    EXPECT_EQ(by_arrival[1].seq, SeqId{2});
    EXPECT_EQ(by_arrival[1].place, 0u);
    EXPECT_EQ(by_arrival[2].place, 1u);
    EXPECT_EQ(by_arrival[2].first_token, 7'100'000);
    const auto by_deadline = line.told(cadence());
    EXPECT_EQ(by_deadline[0].seq, SeqId{3}) << "the short one goes first";
    EXPECT_EQ(by_deadline[0].first_token, 100'000);
    EXPECT_EQ(by_deadline[2].seq, SeqId{2});
    EXPECT_EQ(by_deadline[2].place, 1u);
}

TEST(forecast, without_a_table_nothing_is_claimed) {
    Line line;
    line.costs.clear();
    line.waiting = {prompt(0, 100, 10)};
    EXPECT_EQ(line.told(cadence())[0].first_token, 0);
}

}  // namespace
}  // namespace cadans::sched
