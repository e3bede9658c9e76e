// Goal: no stream waits longer than the gap, prompts get the rest, nothing starves. Method: random views against the
// promise, and a scheduler on a clock that runs as predicted.
#include "sched/cadence.h"

#include <gtest/gtest.h>

#include <map>

#include "base/random.h"
#include "sched/chunk.h"
#include "sched/policies.h"
#include "sched/scheduler.h"
#include "sched/testing/slow_machine.h"

namespace cadans::sched {
namespace {

constexpr Micros kSecond = 1'000'000;

struct Views {
    std::vector<SequenceView> running, waiting;
    std::vector<StepCost> costs = {slow_machine()};
    SchedulerLimits limits{.max_rows = 528, .max_running = 16, .prefill_chunk = 256, .gap = 200'000};
    Nanos now = 0;

    View view() const { return {now, limits, running, waiting, costs}; }
    std::vector<Share> share() const {
        std::vector<Share> shares;
        cadence().share(view(), shares);
        return shares;
    }
    Micros predicted(const std::vector<Share>& shares) const {
        StepShape shape;
        for (const Share& share : shares) {
            const SequenceView& one = running[share.sequence];
            const uint32_t logits = one.score ? share.rows : share.rows == one.due();
            costs[0].add(shape, one.computed, share.rows, logits);
        }
        return costs[0].predict(shape);
    }
    uint32_t rows_of(const std::vector<Share>& shares, uint32_t sequence) const {
        for (const Share& share : shares) {
            if (share.sequence == sequence) return share.rows;
        }
        return 0;
    }
};

SequenceView prompt(uint64_t arrival, uint32_t tokens, uint32_t computed = 0) {
    SequenceView one;
    one.seq = SeqId{arrival + 1};
    one.arrival = arrival;
    one.prompt = one.known = tokens;
    one.computed = computed;
    one.known_max = tokens + 100;
    return one;
}

SequenceView writer(uint64_t arrival, uint32_t known) {
    SequenceView one = prompt(arrival, known - 1, known - 1);
    one.known = known;
    return one;
}

TEST(cadence, every_step_has_all_who_write_and_ends_within_the_gap) {
    for (uint64_t seed = 1; seed <= 2000; seed++) {
        uint64_t draws = 0;
        const auto draw = [&](uint64_t below) { return mix64(seed * 7919 + ++draws) % below; };
        Views views;
        views.limits.gap = static_cast<Micros>(20'000 + draw(400'000));
        views.costs[0].row_ps = 1 + draw(8'000'000'000);
        views.costs[0].weights_ps = draw(60'000'000'000);
        bool prompts = false;
        const uint64_t count = 1 + draw(16);
        for (uint64_t i = 0; i < count; i++) {
            const auto known = static_cast<uint32_t>(2 + draw(5000));
            if (draw(3) == 0) {
                views.running.push_back(prompt(i, known, static_cast<uint32_t>(draw(known - 1))));
                prompts = true;
            } else {
                views.running.push_back(writer(i, known));
            }
        }
        const std::vector<Share> shares = views.share();
        std::vector<Share> writing;
        uint32_t rows = 0;
        for (const Share& share : shares) {
            if (views.running[share.sequence].phase() != Phase::prefill) writing.push_back(share);
            rows += share.rows;
        }
        const auto writers = static_cast<size_t>(std::ranges::count_if(
            views.running, [](const SequenceView& one) { return one.phase() != Phase::prefill; }));
        ASSERT_EQ(writing.size(), writers) << "seed " << seed << ": nobody's word is left out";
        ASSERT_LE(rows, views.limits.max_rows);
        if (prompts) {
            ASSERT_GT(shares.size(), writing.size()) << "seed " << seed << ": prompts always move";
        }
        if (writers == 0) continue;
        const Micros alone = views.predicted(writing);
        const Micros within = time_for_step(planned_step(views.limits.gap, kUsualMargin), alone);
        if (rows > writers + 1) {
            ASSERT_LE(views.predicted(shares), within) << "seed " << seed;
        }
        // And no time is left over: one row more of some unfinished prompt would be too long.
        const Share last = shares.back();
        const SequenceView& one = views.running[last.sequence];
        const bool first_word = std::ranges::any_of(shares, [&](const Share& share) {
            return share.rows > 1 && share.rows == views.running[share.sequence].due();
        });
        if (!prompts || first_word || last.rows == one.due() || rows == views.limits.max_rows) continue;
        std::vector<Share> more = shares;
        more.back().rows++;
        ASSERT_GT(views.predicted(more), within) << "seed " << seed;
    }
}

TEST(cadence, with_nobody_writing_a_step_is_what_the_machine_likes_best) {
    Views views;
    views.running = {prompt(0, 6000)};
    const std::vector<Share> shares = views.share();
    const uint32_t good = smallest_good_chunk(views.costs[0], views.limits.max_rows, 98);
    EXPECT_GE(shares[0].rows, good);
    views.limits.gap = 1;
    EXPECT_GE(views.share()[0].rows + 1, good) << "however small the gap";
    EXPECT_LE(views.share()[0].rows, good + 2) << "and not larger, so that who comes is heard soon";
}

TEST(cadence, when_words_take_all_the_time_prompts_get_a_tenth) {
    Views views;
    views.limits.gap = 50'000;
    for (uint64_t i = 0; i < 12; i++) views.running.push_back(writer(i, 2000));
    views.running.push_back(prompt(12, 4000));
    std::vector<Share> shares = views.share();
    const std::vector<Share> writing(shares.begin(), shares.begin() + 12);
    const Micros alone = views.predicted(writing), all = views.predicted(shares);
    ASSERT_GT(alone, views.limits.gap);
    EXPECT_GE(10 * (all - alone), alone / 2);
    EXPECT_LE(all, time_for_step(views.limits.gap, alone));
    EXPECT_EQ(cadence().promise(views.view()), time_for_step(views.limits.gap, alone)) << "and the promise says so";
    views.waiting = {prompt(13, 10)};
    EXPECT_EQ(cadence().next(views.view()), kNobody) << "new streams wait";
    views.running.clear();
    EXPECT_EQ(cadence().next(views.view()), 0u);
}

TEST(cadence, a_short_prompt_overtakes_a_long_one) {
    Views views;
    views.running = {prompt(0, 6000, 1000), prompt(1, 30)};
    views.running[1].admitted = 10 * kNanosPerSecond;
    views.now = 10 * kNanosPerSecond;
    const std::vector<Share> shares = views.share();
    EXPECT_EQ(views.rows_of(shares, 1), 30u);
}

TEST(cadence, a_step_that_brings_a_first_word_waits_for_other_first_words_only) {
    Views views;
    views.costs[0].weights_ps = 1'000'000'000;
    views.costs[0].row_ps = 500'000'000;
    views.costs[0].logits_ps = 0;
    views.running = {prompt(0, 6000, 1000), prompt(1, 30), prompt(2, 5)};
    views.running[2].admitted = kNanosPerSecond;
    std::vector<Share> shares = views.share();
    EXPECT_EQ(views.rows_of(shares, 0), 0u) << "its word is far away";
    EXPECT_EQ(views.rows_of(shares, 1), 30u);
    EXPECT_EQ(views.rows_of(shares, 2), 5u);
    views.running[2] = prompt(2, 20);
    views.running[2].admitted = kNanosPerSecond;
    shares = views.share();
    EXPECT_EQ(views.rows_of(shares, 1), 30u);
    EXPECT_EQ(views.rows_of(shares, 2), 0u) << "it would hold up the other by more than a quarter";
}

TEST(cadence, a_long_prompt_past_its_time_has_half_and_the_short_the_rest) {
    Views views;
    views.running = {prompt(0, 6000, 1000), prompt(1, 200)};
    views.now = views.running[1].admitted = 10'000 * kNanosPerSecond;
    ASSERT_LT(deadline_of(views.view(), views.running[0]), views.now / kNanosPerMicro);
    const std::vector<Share> shares = views.share();
    EXPECT_GT(views.rows_of(shares, 0), 5u);
    EXPECT_GT(views.rows_of(shares, 1), 5u);
}

TEST(cadence, who_used_less_of_the_machine_goes_first_up_to_a_bound) {
    Views views;
    views.running = {prompt(0, 500), prompt(1, 500)};
    views.running[0].lead = 5 * kSecond;
    views.running[1].admitted = 2 * kNanosPerSecond;
    EXPECT_GT(deadline_of(views.view(), views.running[0]), deadline_of(views.view(), views.running[1]));
    views.running[0].lead = 3600 * kSecond;
    views.running[1].admitted = 60 * kNanosPerSecond;
    EXPECT_LT(deadline_of(views.view(), views.running[0]), deadline_of(views.view(), views.running[1]));
}

TEST(cadence, background_has_what_others_leave_until_its_patience_ends) {
    Views views;
    views.running = {prompt(0, 3000), prompt(1, 3000), writer(2, 100), writer(3, 100)};
    views.running[0].priority = views.running[2].priority = Priority::background;
    std::vector<Share> shares = views.share();
    EXPECT_EQ(views.rows_of(shares, 0), 0u);
    EXPECT_GT(views.rows_of(shares, 1), 0u);
    EXPECT_EQ(views.rows_of(shares, 2), 0u) << "a background stream pauses too";
    EXPECT_EQ(views.rows_of(shares, 3), 1u);

    views.now = kPatience;
    shares = views.share();
    EXPECT_EQ(views.rows_of(shares, 2), 1u);
    EXPECT_FALSE(only_slack(views.view(), views.running[0]));

    views.now = 0;
    views.running[1].priority = Priority::background;  // now no other prompt is due
    shares = views.share();
    EXPECT_GT(views.rows_of(shares, 0), 0u);
    EXPECT_EQ(views.rows_of(shares, 2), 1u);
    const Micros writing = views.predicted({{3, 1}});
    EXPECT_LE(views.predicted(shares), std::max(views.predicted({{2, 1}, {3, 1}}), writing + writing / 4) + 6'000)
        << "beside a stream, background takes a quarter of its time (and one row)";
}

TEST(cadence, a_waiting_one_starts_only_where_it_would_have_rows) {
    Views views;
    views.running = {prompt(0, 3000)};
    views.waiting = {prompt(1, 4000), prompt(2, 50)};
    EXPECT_EQ(cadence().next(views.view()), 1u) << "the short one overtakes";
    views.waiting.pop_back();
    EXPECT_EQ(cadence().next(views.view()), kNobody) << "the longer one would only hold pages";
}

/// A scheduler on a clock that runs exactly as predicted.
class PredictedWorld {
  public:
    explicit PredictedWorld(std::string_view policy, Micros gap = 200'000)
        : scheduler_(house(gap), *policy_by_name(policy)) {}

    void admit(uint64_t seq, uint32_t prompt, uint32_t max_new, uint64_t scope = 0) {
        SequenceRequest request;
        request.seq = SeqId{seq};
        request.request = RequestId{seq};
        request.prompt.assign(prompt, TokenId{1});
        request.max_new_tokens = max_new;
        request.scope = scope;
        ASSERT_TRUE(scheduler_.admit(std::move(request), now_));
        admitted_[seq] = now_;
    }

    bool step() {
        const StepPlan* plan = scheduler_.plan(now_, events_);
        if (plan == nullptr) return false;
        StepResult result;
        result.id = plan->id;
        result.begin = now_;
        result.end = now_ + scheduler_.time().predict(*plan) * kNanosPerMicro;
        for (const StepItem& item : plan->items) {
            const auto at = static_cast<uint32_t>(result.accepted.size());
            result.items.push_back({item.seq, item.count, at, at + item.sample, 0, 0, false});
            if (item.sample) result.accepted.push_back({TokenId{2}, 0.0F, 0, {}});
        }
        now_ = result.end;
        events_.clear();
        scheduler_.commit(result, now_, events_);
        for (const Event& event : events_) {
            if (event.kind != EventKind::token) continue;
            const uint64_t seq = index(event.seq);
            if (last_.contains(seq)) {
                largest_gap_ = std::max(largest_gap_, now_ - last_[seq]);
            } else {
                first_[seq] = now_ - admitted_[seq];
            }
            last_[seq] = now_;
        }
        return true;
    }

    Micros first_token(uint64_t seq) {
        while (!first_.contains(seq)) {
            if (!step()) return -1;
        }
        return first_[seq] / kNanosPerMicro;
    }
    bool has_first_token(uint64_t seq) const { return first_.contains(seq); }
    Micros largest_gap() const { return largest_gap_ / kNanosPerMicro; }
    void forget_gaps() { largest_gap_ = 0; }
    Nanos now() const { return now_; }

  private:
    static House house(Micros gap) {
        House house;
        house.models = {ModelFacts{ModelId{0}, 100, 16'384, {{0, 10}}}};
        house.page_bytes = 100'000;
        house.limits = {.max_rows = 528, .max_running = 16, .prefill_chunk = 256, .gap = gap};
        house.costs = {slow_machine()};
        return house;
    }

    Scheduler scheduler_;
    std::vector<Event> events_;
    std::map<uint64_t, Nanos> admitted_, first_, last_;
    Nanos now_ = 0;
    Nanos largest_gap_ = 0;
};

/// Three streams, then a long prompt: the largest gap, and the prompt's time to its first token.
std::pair<Micros, Micros> interference(std::string_view policy) {
    PredictedWorld world(policy);
    for (uint64_t seq = 1; seq <= 3; seq++) world.admit(seq, 40, 4000);
    for (int i = 0; i < 20; i++) world.step();
    world.forget_gaps();
    world.admit(9, 6000, 16);
    const Micros first = world.first_token(9);
    for (int i = 0; i < 3; i++) world.step();  // a stall ends with a word
    return {world.largest_gap(), first};
}

TEST(cadence_world, a_long_prompt_lets_no_stream_wait_longer_than_the_gap) {
    const auto [gap, first] = interference("cadence");
    EXPECT_LE(gap, 200'000);
    for (const std::string_view baseline : {"prefill-first", "static-chunk", "fixed-batch"}) {
        const auto [other_gap, other_first] = interference(baseline);
        EXPECT_GT(other_gap, 5 * gap) << baseline;
        std::printf("%-14.*s largest gap %6.2f s, first token %6.1f s; cadence %5.2f s, %6.1f s\n",
                    static_cast<int>(baseline.size()), baseline.data(), static_cast<double>(other_gap) / 1e6,
                    static_cast<double>(other_first) / 1e6, static_cast<double>(gap) / 1e6,
                    static_cast<double>(first) / 1e6);
    }
}

TEST(cadence_world, chunks_cost_an_undisturbed_prompt_at_most_two_percent) {
    PredictedWorld cut("cadence"), whole("prefill-first");
    cut.admit(1, 6000, 2);
    whole.admit(1, 6000, 2);
    EXPECT_LE(cut.first_token(1) * 100, whole.first_token(1) * 102);
}

TEST(cadence_world, a_short_chat_beside_a_long_prompt_waits_at_most_three_times_its_time_alone) {
    for (const uint32_t streams : {0u, 3u}) {
        PredictedWorld alone("cadence"), busy("cadence");
        alone.admit(1, 80, 20);
        const Micros lonely = alone.first_token(1);
        for (uint64_t seq = 1; seq <= streams; seq++) busy.admit(seq, 40, 4000);
        busy.admit(20, 6000, 20);
        for (int i = 0; i < 30; i++) busy.step();
        ASSERT_FALSE(busy.has_first_token(20));
        busy.admit(21, 80, 20);
        EXPECT_LE(busy.first_token(21), 3 * lonely) << streams << " streams";
        EXPECT_FALSE(busy.has_first_token(20));
    }
}

TEST(cadence_world, a_long_prompt_under_a_flood_of_short_ones_still_ends) {
    PredictedWorld world("cadence");
    world.admit(1, 3000, 4);
    uint64_t next = 2;
    while (!world.has_first_token(1)) {
        // More than the machine can read: a new one whenever a step ends.
        world.admit(next, 200, 1);
        next++;
        ASSERT_TRUE(world.step());
        ASSERT_LT(next, 3000u) << "starved";
    }
    const Micros alone = 3000 * 6'000 + 3000 * 3000 / 2 * 1;
    EXPECT_LT(world.now() / kNanosPerMicro, 4 * alone + kSecond + 2 * alone + alone / 2) << "when late, it has half";
}

}  // namespace
}  // namespace cadans::sched
