// Goal: what is forecast is what happens when nothing else does. Method: lines by hand.
#include "sched/forecast.h"

#include <gtest/gtest.h>

#include "sched/cadence.h"
#include "sched/chunk.h"
#include "sched/static_chunk.h"

namespace cadans::sched {
namespace {

constexpr Micros kStep = planned_step(100'000, kUsualMargin);  ///< of the gap that the tests have

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
    std::vector<ModelFacts> models{{.vocab_size = 100, .context_tokens = 1000, .groups = {}}};

    Outlook outlook(const Policy& policy) const {
        Outlook out;
        forecast({5, limits, running, waiting, costs}, models, policy, out);
        return out;
    }
    std::vector<Forecast> told(const Policy& policy) const { return outlook(policy).line; }
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
    EXPECT_EQ(line.told(static_chunk())[0].first_token, 1'000'000LL * kStep / (kStep - 20'000))
        << "20 ms of each step are words";
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
    const Outlook outlook = line.outlook(cadence());
    EXPECT_EQ(outlook.line[0].first_token, 0);
    EXPECT_FALSE(outlook.newcomer(ModelId{}, 100, 10, 7));
    EXPECT_FALSE(outlook.first_end);
}

TEST(forecast, a_newcomer_to_an_empty_house_takes_its_time_alone) {
    const Outlook outlook = Line{}.outlook(cadence());
    const auto told = outlook.newcomer(ModelId{}, 200, 11, 7);
    ASSERT_TRUE(told);
    EXPECT_EQ(told->made, 7);
    EXPECT_EQ(told->place, 0u);
    EXPECT_EQ(told->first_token, 2'000'000) << "between those of 128 and of 256 tokens";
    EXPECT_EQ(told->finish, 2'000'000 + 10 * 20'000);
    EXPECT_EQ(outlook.newcomer(ModelId{}, 1, 1, 7)->first_token, 320'000) << "as the shortest that is told";
    EXPECT_FALSE(outlook.newcomer(ModelId{1}, 200, 11, 7)) << "a model that is not here";
}

TEST(forecast, a_newcomer_stands_where_the_policy_puts_it) {
    Line line;
    line.running = {prompt(0, 100, 1)};
    line.waiting = {prompt(1, 600, 1), prompt(2, 10, 1)};
    const auto last = line.outlook(static_chunk()).newcomer(ModelId{}, 128, 1, 7);
    EXPECT_EQ(last->place, 2u);
    EXPECT_EQ(last->first_token, 7'100'000 + 1'280'000 + kStep / 2) << "and half of the step that runs";
    const auto sooner = line.outlook(cadence()).newcomer(ModelId{}, 128, 1, 7);
    EXPECT_EQ(sooner->place, 1u) << "behind the shorter one, before the longer";
    EXPECT_EQ(sooner->first_token, 100'000 + 1'000'000 + 1'280'000 + kStep / 2);
}

TEST(forecast, where_nobody_reads_the_step_that_runs_is_one_of_words) {
    Line line;
    line.limits.gap = 60'000'000;  // what a step may take, not what it takes
    SequenceView writer = prompt(0, 50, 100);
    writer.known = 51;
    writer.computed = 50;
    line.running = {writer};
    const Micros told = line.outlook(cadence()).newcomer(ModelId{}, 32, 1, 7)->first_token;
    EXPECT_GE(told, 320'000 + 20'000 / 2);
    EXPECT_LT(told, 320'000 + 20'000);
}

TEST(forecast, the_first_end_is_of_whoever_ends_first) {
    Line line;
    SequenceView writer = prompt(0, 50, 100);
    writer.known = 51;
    writer.computed = 50;
    line.running = {writer};
    EXPECT_EQ(line.outlook(static_chunk()).first_end, 99 * 20'000) << "all words that it may still write";
    line.running.push_back(prompt(1, 70, 1));
    EXPECT_EQ(line.outlook(static_chunk()).first_end, 700'000LL * kStep / (kStep - 20'000)) << "the prompt's only word";
    line.running[1].known_max += 1000;
    EXPECT_EQ(line.outlook(static_chunk()).first_end, 9 * kStep + 90 * 20'000) << "slower while the prompt is read";
}

}  // namespace
}  // namespace cadans::sched
