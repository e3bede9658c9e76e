#include "sched/scheduler.h"

#include <gtest/gtest.h>

#include <numeric>

#include "base/testing/allocations.h"
#include "flow/testing/counting_constraint.h"
#include "kv/page_needs.h"
#include "sched/static_chunk.h"

namespace cadans::sched {
namespace {

constexpr TokenId kEnd{7};

House house(uint64_t pages, SchedulerLimits limits = {.max_rows = 16, .max_running = 4, .prefill_chunk = 8}) {
    return {{ModelFacts{ModelId{0}, 100, 400, {{0, 10}}}}, pages * 10, limits};
}

SequenceRequest request(uint64_t seq, uint32_t prompt, uint32_t max_new) {
    SequenceRequest asked;
    asked.seq = SeqId{seq};
    asked.request = RequestId{seq};
    asked.prompt.assign(prompt, TokenId{1});
    asked.max_new_tokens = max_new;
    asked.end_tokens = {kEnd};
    return asked;
}

/// A scheduler with the simplest executor: every drawn token is `next`.
struct Bench {
    explicit Bench(House h, Policy policy = static_chunk()) : scheduler(std::move(h), policy) {}

    const StepPlan* plan() { return scheduler.plan(now, events); }

    void commit(const StepPlan& plan, TokenId next = TokenId{2}) {
        result.clear();
        result.id = plan.id;
        result.begin = now;
        result.end = ++now;
        for (const StepItem& item : plan.items) {
            const auto at = static_cast<uint32_t>(result.accepted.size());
            const auto scores = static_cast<uint32_t>(result.scores.size());
            for (uint32_t p = item.first; item.score && p < item.first + item.count && p + 1 < item.known.size(); p++) {
                result.scores.push_back({item.known[p + 1], -1.0F, 0, {}});
            }
            result.items.push_back({item.seq, item.count, at, at + item.sample, scores,
                                    static_cast<uint32_t>(result.scores.size()), item.seq == fails});
            if (item.sample) result.accepted.push_back({next, 0.0F, 0, {}});
            if (!item.sample || item.constraint == nullptr) continue;
            ItemResult& got = result.items.back();
            got.stuck = item.seq == sticks;
            got.constraint_at = item.constraint->after(item.constraint_at, next);
            got.complete = item.constraint->complete(got.constraint_at);
        }
        scheduler.commit(result, now, events);
    }

    bool step(TokenId next = TokenId{2}) {
        const StepPlan* planned = plan();
        if (planned == nullptr) return false;
        commit(*planned, next);
        if (checking) scheduler.check_invariants();
        return true;
    }

    std::vector<Event> of(EventKind kind) const {
        std::vector<Event> found;
        for (const Event& event : events) {
            if (event.kind == kind) found.push_back(event);
        }
        return found;
    }

    Scheduler scheduler;
    StepResult result;
    std::vector<Event> events;
    Nanos now = 0;
    SeqId fails{}, sticks{};
    bool checking = true;  ///< a check allocates
};

TEST(scheduler, decode_rows_come_first_and_a_prompt_gets_its_chunk) {
    Bench bench(house(100));
    ASSERT_TRUE(bench.scheduler.admit(request(1, 1, 10), 0));
    ASSERT_TRUE(bench.step());
    ASSERT_TRUE(bench.scheduler.admit(request(2, 20, 10), 0));
    const StepPlan* plan = bench.plan();
    ASSERT_EQ(plan->items.size(), 2u);
    EXPECT_EQ(plan->items[0].seq, SeqId{1});
    EXPECT_EQ(plan->items[0].phase, Phase::decode);
    EXPECT_TRUE(plan->items[0].sample);
    EXPECT_EQ(plan->items[1].count, 8u);
    EXPECT_FALSE(plan->items[1].sample);
    EXPECT_EQ(plan->rows_by_phase[0], 8u);
    EXPECT_EQ(plan->rows_by_phase[1], 1u);
}

TEST(scheduler, prompts_share_a_step_in_order_of_arrival) {
    Bench bench(house(100));
    ASSERT_TRUE(bench.scheduler.admit(request(1, 5, 10), 0));
    ASSERT_TRUE(bench.scheduler.admit(request(2, 20, 10), 0));
    const StepPlan* plan = bench.plan();
    ASSERT_EQ(plan->items.size(), 2u);
    EXPECT_EQ(plan->items[0].count, 5u);
    EXPECT_TRUE(plan->items[0].sample) << "the last prompt row brings the first token";
    EXPECT_EQ(plan->items[1].count, 3u);
}

TEST(scheduler, one_step_at_a_time) {
    Bench bench(house(100));
    ASSERT_TRUE(bench.scheduler.admit(request(1, 5, 10), 0));
    const StepPlan* plan = bench.plan();
    ASSERT_NE(plan, nullptr);
    EXPECT_EQ(bench.plan(), nullptr);
    bench.commit(*plan);
    EXPECT_NE(bench.plan(), nullptr);
}

TEST(scheduler, an_end_token_is_told_and_ends_with_stop) {
    Bench bench(house(100));
    ASSERT_TRUE(bench.scheduler.admit(request(1, 3, 10), 0));
    bench.step();
    bench.step(kEnd);
    EXPECT_EQ(bench.of(EventKind::token).size(), 2u);
    ASSERT_EQ(bench.of(EventKind::finished).size(), 1u);
    EXPECT_EQ(bench.events.back().reason, FinishReason::stop);
    EXPECT_TRUE(bench.scheduler.idle());
    EXPECT_EQ(bench.scheduler.pages().leased_bytes(), 0u);
}

TEST(scheduler, the_asked_number_of_tokens_ends_with_length) {
    Bench bench(house(100));
    ASSERT_TRUE(bench.scheduler.admit(request(1, 3, 5), 0));
    while (bench.step()) {
    }
    EXPECT_EQ(bench.of(EventKind::token).size(), 5u);
    EXPECT_EQ(bench.of(EventKind::token).back().position, 7u);
    EXPECT_EQ(bench.events.back().reason, FinishReason::length);
}

TEST(scheduler, nothing_to_draw_ends_after_the_prompt) {
    Bench bench(house(100));
    ASSERT_TRUE(bench.scheduler.admit(request(1, 20, 0), 0));
    uint32_t rows = 0;
    while (const StepPlan* plan = bench.plan()) {
        for (const StepItem& item : plan->items) EXPECT_FALSE(item.sample);
        rows += plan->rows();
        bench.commit(*plan);
    }
    EXPECT_EQ(rows, 20u);
    EXPECT_TRUE(bench.of(EventKind::token).empty());
    EXPECT_EQ(bench.events.back().reason, FinishReason::length);
}

TEST(scheduler, what_can_never_fit_is_refused_with_both_numbers) {
    Bench bench(house(4));  // 128 tokens
    const Status pages = bench.scheduler.admit(request(1, 120, 10), 0);
    ASSERT_FALSE(pages);
    EXPECT_EQ(pages.error().code, ErrorCode::too_long);
    EXPECT_NE(pages.error().message.find("129"), std::string::npos) << pages.error().message;
    EXPECT_NE(pages.error().message.find("128"), std::string::npos) << pages.error().message;
    EXPECT_TRUE(bench.scheduler.admit(request(1, 120, 9), 0)) << "the last token is never computed";

    const Status context = bench.scheduler.admit(request(2, 390, 11), 0);
    ASSERT_FALSE(context);
    EXPECT_EQ(context.error().code, ErrorCode::too_long);
    EXPECT_NE(context.error().message.find("401"), std::string::npos);
    EXPECT_NE(context.error().message.find("400"), std::string::npos);
    EXPECT_FALSE(bench.scheduler.admit(request(3, 10, UINT32_MAX), 0)) << "no sum wraps round";
}

TEST(scheduler, the_longest_sequence_is_admitted_and_one_token_more_is_not) {
    House h = house(12);
    h.models[0].groups.push_back({64, 7});  // a window needs more pages the more rows a step may have
    const uint32_t longest = longest_sequence(h, h.models[0]);
    EXPECT_GT(longest, 100u);
    EXPECT_LT(longest, 400u);
    EXPECT_TRUE(could_run(h, request(1, longest, 1)));
    EXPECT_EQ(could_run(h, request(1, longest, 2)).error().code, ErrorCode::too_long);
}

TEST(scheduler, bad_requests_are_refused_by_name) {
    Bench bench(house(100));
    EXPECT_EQ(bench.scheduler.admit(request(1, 0, 10), 0).error().code, ErrorCode::bad_input);
    SequenceRequest stranger = request(1, 3, 1);
    stranger.prompt[1] = TokenId{100};
    EXPECT_EQ(bench.scheduler.admit(stranger, 0).error().where, "prompt[1]");
    SequenceRequest nowhere = request(1, 3, 1);
    nowhere.model = ModelId{9};
    EXPECT_EQ(bench.scheduler.admit(nowhere, 0).error().code, ErrorCode::not_found);
    SequenceRequest unsorted = request(1, 3, 1);
    unsorted.end_tokens = {TokenId{3}, TokenId{3}};
    EXPECT_EQ(bench.scheduler.admit(request(1, 3, 1), 0, 3).error().where, "arrived");
    EXPECT_EQ(bench.scheduler.admit(unsorted, 0).error().code, ErrorCode::bad_input);
    EXPECT_TRUE(bench.scheduler.idle());
}

TEST(scheduler, one_that_comes_with_keys_and_values_begins_behind_them) {
    Bench bench(house(10));
    ASSERT_TRUE(bench.scheduler.admit(request(1, 50, 5), 0, 49));
    const StepPlan* plan = bench.plan();
    ASSERT_NE(plan, nullptr);
    ASSERT_EQ(plan->items.size(), 1u);
    EXPECT_EQ(plan->items[0].first, 49u);
    EXPECT_EQ(plan->items[0].phase, Phase::decode);
    bench.scheduler.check_invariants();
    bench.commit(*plan);
    while (bench.step()) {
    }
    EXPECT_EQ(bench.of(EventKind::token).size(), 5u);
    uint32_t rows = 0;
    for (const Event& event : bench.of(EventKind::step_share)) {
        rows += event.rows;
        EXPECT_EQ(event.cached, 0u);
        EXPECT_EQ(event.recomputed, 0u);
    }
    EXPECT_EQ(rows, 5u) << "one a token, and none of the prompt";
    EXPECT_EQ(bench.scheduler.pages().leased_bytes(), 0u);
}

TEST(scheduler, who_loses_what_it_came_with_computes_it) {
    Bench bench(house(5));
    ASSERT_TRUE(bench.scheduler.admit(request(1, 30, 100), 0));
    ASSERT_TRUE(bench.scheduler.admit(request(2, 30, 70), 0, 29));
    while (bench.step()) {
    }
    ASSERT_FALSE(bench.of(EventKind::preempted).empty());
    uint32_t rows = 0, recomputed = 0;
    for (const Event& event : bench.of(EventKind::step_share)) {
        if (event.seq != SeqId{2}) continue;
        rows += event.rows;
        recomputed += event.recomputed;
    }
    EXPECT_EQ(rows - recomputed, 70u);
    EXPECT_GE(recomputed, 29u);
    EXPECT_EQ(bench.of(EventKind::token).size(), 170u);
}

TEST(scheduler, a_prompt_that_is_scored_is_computed_whatever_came_with_it) {
    Bench bench(house(10));
    SequenceRequest asked = request(1, 20, 1);
    asked.score_prompt = true;
    ASSERT_TRUE(bench.scheduler.admit(asked, 0, 19));
    while (bench.step()) {
    }
    EXPECT_EQ(bench.of(EventKind::prompt_score).size(), 19u);
}

TEST(scheduler, a_large_one_waits_and_nobody_overtakes_it) {
    Bench bench(house(10));
    ASSERT_TRUE(bench.scheduler.admit(request(1, 200, 10), 0));
    ASSERT_TRUE(bench.scheduler.admit(request(2, 200, 10), 0));
    ASSERT_TRUE(bench.scheduler.admit(request(3, 5, 10), 0));
    bench.step();
    Occupancy now;
    bench.scheduler.occupancy(now);
    EXPECT_EQ(now.running, 1u);
    EXPECT_EQ(now.waiting, 2u);
}

TEST(scheduler, cancelled_while_waiting_ends_at_once) {
    Bench bench(house(10));
    ASSERT_TRUE(bench.scheduler.admit(request(1, 5, 10), 0));
    bench.scheduler.cancel(SeqId{1}, 3, bench.events);
    ASSERT_EQ(bench.events.size(), 1u);
    EXPECT_EQ(bench.events[0].reason, FinishReason::cancelled);
    EXPECT_EQ(bench.events[0].time, 3);
    bench.scheduler.cancel(SeqId{1}, 4, bench.events);
    EXPECT_EQ(bench.events.size(), 1u) << "a second cancel changes nothing";
}

TEST(scheduler, cancelled_during_its_step_keeps_its_pages_until_the_commit) {
    Bench bench(house(10));
    ASSERT_TRUE(bench.scheduler.admit(request(1, 20, 10), 0));
    const StepPlan* plan = bench.plan();
    bench.scheduler.cancel(SeqId{1}, 0, bench.events);
    bench.scheduler.check_invariants();
    EXPECT_GT(bench.scheduler.pages().leased_bytes(), 0u);
    EXPECT_TRUE(bench.of(EventKind::finished).empty());
    bench.commit(*plan);
    EXPECT_EQ(bench.scheduler.pages().leased_bytes(), 0u);
    EXPECT_EQ(bench.events.back().reason, FinishReason::cancelled);
    EXPECT_FALSE(bench.step());
}

TEST(scheduler, cancel_all_ends_those_who_wait_now_and_those_in_a_step_at_its_end) {
    Bench bench(house(10));
    for (uint64_t seq = 1; seq <= 8; seq++) ASSERT_TRUE(bench.scheduler.admit(request(seq, 20, 10), 0));
    const StepPlan* plan = bench.plan();
    bench.scheduler.cancel_all(0, bench.events);
    bench.commit(*plan);
    EXPECT_EQ(bench.of(EventKind::finished).size(), 8u);
    EXPECT_TRUE(bench.scheduler.idle());
}

TEST(scheduler, logits_that_are_no_numbers_end_one_and_leave_the_others) {
    Bench bench(house(10));
    ASSERT_TRUE(bench.scheduler.admit(request(1, 3, 3), 0));
    ASSERT_TRUE(bench.scheduler.admit(request(2, 3, 3), 0));
    bench.fails = SeqId{1};
    while (bench.step()) {
    }
    const auto ends = bench.of(EventKind::finished);
    ASSERT_EQ(ends.size(), 2u);
    EXPECT_EQ(ends[0].reason, FinishReason::error);
    EXPECT_EQ(ends[1].reason, FinishReason::length);
}

TEST(scheduler, short_of_pages_the_newest_gives_way_and_comes_back_whole) {
    Bench bench(house(5));
    ASSERT_TRUE(bench.scheduler.admit(request(1, 30, 100), 0));
    ASSERT_TRUE(bench.scheduler.admit(request(2, 30, 70), 0));
    while (bench.step()) {
    }
    const auto preempted = bench.of(EventKind::preempted);
    const auto resumed = bench.of(EventKind::resumed);
    ASSERT_FALSE(preempted.empty());
    EXPECT_EQ(preempted.size(), resumed.size());
    for (const Event& event : preempted) EXPECT_EQ(event.seq, SeqId{2});
    uint32_t recomputed = 0;
    for (const Event& event : bench.of(EventKind::step_share)) recomputed += event.recomputed;
    EXPECT_GT(recomputed, 30u);
    std::vector<uint32_t> seen[3];
    for (const Event& event : bench.of(EventKind::token)) seen[index(event.seq)].push_back(event.position);
    for (const auto& [seq, count] : {std::pair{1, 100u}, std::pair{2, 70u}}) {
        std::vector<uint32_t> each(count);
        std::iota(each.begin(), each.end(), 30u);
        EXPECT_EQ(seen[seq], each);
    }
}

TEST(scheduler, an_answer_ends_with_stop_where_its_constraint_is_complete) {
    Bench bench(house(6));
    const auto constraint = std::make_shared<CountingConstraint>(40, 1, 100);
    for (const uint64_t seq : {1, 2, 3}) {
        SequenceRequest asked = request(seq, 30, 98);
        asked.constraint = constraint;
        ASSERT_TRUE(bench.scheduler.admit(asked, 0));
    }
    while (bench.step()) {
    }
    EXPECT_FALSE(bench.of(EventKind::preempted).empty()) << "its place is kept while its pages are taken";
    EXPECT_EQ(bench.of(EventKind::token).size(), 3u * 40);
    ASSERT_EQ(bench.of(EventKind::finished).size(), 3u);
    for (const Event& event : bench.of(EventKind::finished)) EXPECT_EQ(event.reason, FinishReason::stop);
    EXPECT_EQ(constraint->wrong, 0u);
    EXPECT_EQ(constraint.use_count(), 1) << "who has ended lets go of it";
}

TEST(scheduler, what_a_constraint_forces_is_guessed_before_all_else) {
    struct Silent final : Drafter {
        Speculation begin(const Newcomer& who) override { return who.how; }
        void read(SeqId, std::span<const TokenId>) override {}
        Guess guess(SeqId, std::span<const TokenId>, std::span<TokenId>) override { return {}; }
        void end(SeqId, std::span<const TokenId>) override {}
    } silent;
    for (const bool off : {false, true}) {
        Scheduler scheduler(house(100), static_chunk(), &silent);
        std::vector<Event> events;
        SequenceRequest asked = request(1, 4, 50);
        asked.constraint = std::make_shared<CountingConstraint>(9, 100, 100);
        asked.speculation = off ? Speculation::off : Speculation::automatic;
        ASSERT_TRUE(scheduler.admit(asked, 0));
        const StepPlan* plan = scheduler.plan(0, events);
        ASSERT_TRUE(plan != nullptr && plan->offers.empty()) << "nothing is guessed behind a prompt";
        StepResult result;
        result.id = plan->id;
        result.end = 1;
        result.items.push_back({SeqId{1}, 4, 0, 1});
        result.items[0].constraint_at = 1;
        result.accepted.push_back({TokenId{0}, 0.0F, 0, {}});
        scheduler.commit(result, 1, events);
        plan = scheduler.plan(1, events);
        ASSERT_EQ(plan->offers.size(), off ? 0u : 1u);
        if (off) continue;
        EXPECT_EQ(plan->offers[0].match, kForcedMatch);
        ASSERT_EQ(plan->offers[0].tokens.size(), 6u) << "as far as an end, which is drawn";
        for (uint32_t i = 0; i < 6; i++) EXPECT_EQ(plan->offers[0].tokens[i], TokenId{i + 1});
        EXPECT_GT(plan->items[0].drafts, 2u);
    }
}

TEST(scheduler, who_is_stuck_ends_so_and_leaves_the_others) {
    Bench bench(house(100));
    bench.sticks = SeqId{2};
    for (const uint64_t seq : {1, 2}) {
        SequenceRequest asked = request(seq, 4, 5);
        asked.constraint = std::make_shared<CountingConstraint>(40, 1, 100);
        ASSERT_TRUE(bench.scheduler.admit(asked, 0));
    }
    while (bench.step()) {
    }
    const auto finished = bench.of(EventKind::finished);
    ASSERT_EQ(finished.size(), 2u);
    EXPECT_EQ(finished[0].seq, SeqId{2});
    EXPECT_EQ(finished[0].reason, FinishReason::stuck);
    EXPECT_EQ(finished[1].reason, FinishReason::length);
    for (const Event& event : bench.of(EventKind::token)) EXPECT_EQ(event.seq, SeqId{1});
}

// Of all lengths of the newer one, some have one token to go just when the older one needs a page.
TEST(scheduler, one_about_to_end_does_not_give_way) {
    uint32_t preempted = 0;
    for (uint32_t max_new = 20; max_new <= 60; max_new++) {
        Bench bench(house(4));
        ASSERT_TRUE(bench.scheduler.admit(request(1, 30, 98), 0));
        ASSERT_TRUE(bench.scheduler.admit(request(2, 30, max_new), 0));
        while (bench.step()) {
        }
        uint32_t tokens = 0;
        for (const Event& event : bench.events) {
            if (event.seq != SeqId{2}) continue;
            tokens += event.kind == EventKind::token;
            if (event.kind != EventKind::preempted) continue;
            preempted++;
            EXPECT_LT(tokens + 1, max_new);
        }
        EXPECT_EQ(bench.of(EventKind::finished).size(), 2u);
    }
    EXPECT_GT(preempted, 10u);
}

TEST(scheduler, scores_are_asked_for_only_where_they_are_owed) {
    Bench bench(house(100));
    SequenceRequest echo = request(1, 20, 2);
    echo.score_prompt = true;
    ASSERT_TRUE(bench.scheduler.admit(echo, 0));
    uint32_t scoring_steps = 0;
    while (const StepPlan* plan = bench.plan()) {
        scoring_steps += plan->items[0].score;
        bench.commit(*plan);
    }
    EXPECT_EQ(scoring_steps, 3u);
    const auto scores = bench.of(EventKind::prompt_score);
    ASSERT_EQ(scores.size(), 19u);
    for (uint32_t i = 0; i < 19; i++) EXPECT_EQ(scores[i].position, i + 1);
}

// The echoed prompt loses its pages in its middle; computed again, its chunks fall elsewhere.
TEST(scheduler, a_score_is_told_once_though_its_row_is_computed_twice) {
    Bench bench(house(6, {.max_rows = 16, .max_running = 4, .prefill_chunk = 3}));
    ASSERT_TRUE(bench.scheduler.admit(request(1, 32, 150), 0));
    SequenceRequest echo = request(2, 120, 1);
    echo.score_prompt = true;
    ASSERT_TRUE(bench.scheduler.admit(echo, 0));
    while (bench.step()) {
    }
    ASSERT_EQ(bench.of(EventKind::preempted).size(), 1u);
    const auto scores = bench.of(EventKind::prompt_score);
    ASSERT_EQ(scores.size(), 119u);
    for (uint32_t i = 0; i < 119; i++) EXPECT_EQ(scores[i].position, i + 1);
}

TEST(scheduler, window_pages_are_freed_once_out_of_reach) {
    House h = house(100);
    h.models[0].groups.push_back({32, 1});
    Bench bench(h);
    ASSERT_TRUE(bench.scheduler.admit(request(1, 200, 100), 0));
    uint32_t most = 0;
    while (bench.step()) most = std::max(most, bench.scheduler.pages().leased_pages(1));
    EXPECT_LE(most, kv::most_pages({32, 1}, 299, 16));
    EXPECT_LE(most, 3u);
}

TEST(scheduler, a_warm_step_allocates_nothing) {
    Bench bench(house(1000, {.max_rows = 64, .max_running = 8, .prefill_chunk = 32}));
    bench.checking = false;
    bench.events.reserve(10'000);
    for (uint64_t seq = 1; seq <= 8; seq++) ASSERT_TRUE(bench.scheduler.admit(request(seq, 50, 340), 0));
    for (int i = 0; i < 20; i++) bench.step();
    uint64_t in_steps = 0;
    for (int i = 0; i < 300; i++) {
        bench.events.clear();
        const uint64_t before = allocations_of_this_thread();
        ASSERT_TRUE(bench.step());
        in_steps += allocations_of_this_thread() - before;
    }
    EXPECT_EQ(in_steps, 0u);
}

TEST(scheduler, a_policy_that_gives_nobody_a_share_means_no_step) {
    Policy idle{"idle", [](const View&) { return 0u; }, [](const View&, std::vector<Share>&) {}};
    Bench bench(house(10), idle);
    ASSERT_TRUE(bench.scheduler.admit(request(1, 3, 3), 0));
    EXPECT_EQ(bench.plan(), nullptr);
    EXPECT_FALSE(bench.scheduler.step_in_flight());
}

TEST(scheduler_death, a_result_of_another_step_is_our_bug) {
    Bench bench(house(10));
    ASSERT_TRUE(bench.scheduler.admit(request(1, 3, 3), 0));
    bench.plan();
    StepResult other;
    other.id = StepId{99};
    EXPECT_EXIT(bench.scheduler.commit(other, 0, bench.events), testing::ExitedWithCode(70), "step in flight");
}

}  // namespace
}  // namespace cadans::sched
