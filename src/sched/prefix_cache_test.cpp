// Goal: prompts that begin in cached pages compute the rest only, and nothing else changes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>

#include "base/clock.h"
#include "base/random.h"
#include "base/testing/allocations.h"
#include "sched/cadence.h"
#include "sched/scheduler.h"
#include "sched/static_chunk.h"

namespace cadans::sched {
namespace {

House house(uint64_t pages, SchedulerLimits limits = {.max_rows = 64, .max_running = 8, .prefill_chunk = 40}) {
    House all{{ModelFacts{ModelId{0}, 50'000, 4000, {{0, 10}}}}, pages * 10, limits};
    all.prefix_cache = true;
    return all;
}

std::vector<TokenId> words(uint64_t seed, uint32_t count) {
    std::vector<TokenId> tokens;
    for (uint32_t i = 0; i < count; i++)
        tokens.push_back(TokenId{static_cast<uint32_t>(mix64(seed * 8192 + i) % 50'000)});
    return tokens;
}

/// A scheduler whose every drawn token is `next`, and what was computed.
struct World {
    explicit World(House h, Policy policy = static_chunk()) : scheduler(std::move(h), policy) {
        events.reserve(100'000);
    }

    SeqId ask(std::vector<TokenId> prompt, uint32_t max_new = 1, uint64_t scope = 0, bool score = false) {
        SequenceRequest asked;
        asked.seq = SeqId{++last};
        asked.request = RequestId{last};
        asked.prompt = std::move(prompt);
        asked.max_new_tokens = max_new;
        asked.scope = scope;
        asked.score_prompt = score;
        EXPECT_TRUE(scheduler.admit(std::move(asked), 0));
        return SeqId{last};
    }

    const StepPlan* plan() {
        const StepPlan* planned = scheduler.plan(now, events);
        if (planned == nullptr) return nullptr;
        rows += planned->rows();
        copies += static_cast<uint32_t>(planned->copies.size());
        return planned;
    }

    void commit(const StepPlan& plan) {
        result.clear();
        result.id = plan.id;
        result.begin = now;
        result.end = ++now;
        for (const StepItem& item : plan.items) {
            const auto at = static_cast<uint32_t>(result.accepted.size());
            const auto scores = static_cast<uint32_t>(result.scores.size());
            for (uint32_t p = item.first; item.score && p < item.first + item.count && p + 1 < item.known.size(); p++)
                result.scores.push_back({item.known[p + 1], -1.0F, 0, {}});
            result.items.push_back({item.seq, item.count, at, at + item.sample, scores,
                                    static_cast<uint32_t>(result.scores.size()), false});
            if (item.sample) result.accepted.push_back({TokenId{2}, 0.0F, 0, {}});
        }
        scheduler.commit(result, now, events);
        if (checking) scheduler.check_invariants();
    }

    bool step() {
        const StepPlan* planned = plan();
        if (planned != nullptr) commit(*planned);
        return planned != nullptr;
    }

    uint32_t run() {
        const uint32_t before = rows;
        while (step()) {
        }
        return rows - before;
    }

    Event last_share(SeqId seq) const {
        const auto found = std::find_if(events.rbegin(), events.rend(), [&](const Event& event) {
            return event.kind == EventKind::step_share && event.seq == seq;
        });
        return found == events.rend() ? Event{} : *found;
    }

    auto count(EventKind kind) const {
        return std::count_if(events.begin(), events.end(), [&](const Event& event) { return event.kind == kind; });
    }

    Scheduler scheduler;
    StepResult result;
    std::vector<Event> events;
    Nanos now = 0;
    uint64_t last = 0;
    uint32_t rows = 0, copies = 0;
    bool checking = true;
};

TEST(prefix_cache, a_prompt_told_again_computes_its_last_token_only) {
    World world(house(100));
    world.ask(words(1, 100));
    EXPECT_EQ(world.run(), 100u);
    const SeqId again = world.ask(words(1, 100));
    EXPECT_EQ(world.run(), 1u);
    EXPECT_EQ(world.copies, 1u) << "the page that is not full is copied";
    const Event share = world.last_share(again);
    EXPECT_EQ(share.cached, 99u);
    EXPECT_EQ(share.position, 100u);
    EXPECT_EQ(share.reuse_end, ReuseEnd::whole);
}

TEST(prefix_cache, a_chat_of_ten_turns_computes_each_word_once) {
    World world(house(200));
    std::vector<TokenId> chat = words(1, 50);
    for (uint64_t turn = 1; turn <= 10; turn++) {
        const SeqId seq = world.ask(chat, 20);
        const uint32_t rows = world.run();
        // New prompt tokens, the last answer token (which was never computed), and the answer but its last.
        EXPECT_EQ(rows, (turn == 1 ? 50u : 31u) + 19u);
        EXPECT_EQ(world.last_share(seq).cached, turn == 1 ? 0u : chat.size() - 31);
        chat.insert(chat.end(), 20, TokenId{2});
        const auto more = words(100 + turn, 30);
        chat.insert(chat.end(), more.begin(), more.end());
    }
}

TEST(prefix_cache, answers_to_one_prompt_share_its_pages) {
    World world(house(200));
    for (int i = 0; i < 6; i++) world.ask(words(1, 200), 4);
    EXPECT_LE(world.run(), 200u + 6 * (kPageTokens + 4));
}

TEST(prefix_cache, a_scored_prompt_is_computed_whole_and_says_so) {
    World world(house(100));
    world.ask(words(1, 100));
    world.run();
    const SeqId scored = world.ask(words(1, 100), 1, 0, true);
    EXPECT_EQ(world.run(), 100u);
    EXPECT_EQ(world.count(EventKind::prompt_score), 99);
    EXPECT_EQ(world.last_share(scored).reuse_end, ReuseEnd::scored);
    EXPECT_EQ(world.last_share(scored).cached, 0u);
}

TEST(prefix_cache, another_asker_computes_all) {
    World world(house(100));
    world.ask(words(1, 100), 1, 1);
    world.run();
    const SeqId other = world.ask(words(1, 100), 1, 2);
    EXPECT_EQ(world.run(), 100u);
    EXPECT_EQ(world.last_share(other).reuse_end, ReuseEnd::first_use);
}

TEST(prefix_cache, where_a_prompt_parts_from_what_is_known_is_told) {
    World world(house(100));
    world.ask(words(1, 100));
    world.run();
    auto other = words(1, 100);
    other[70] = TokenId{49'999};
    const SeqId seq = world.ask(other);
    EXPECT_EQ(world.run(), 30u);
    EXPECT_EQ(world.last_share(seq).reuse_end, ReuseEnd::differs);
    EXPECT_EQ(world.last_share(seq).reuse_position, 70u);
}

TEST(prefix_cache, cached_pages_go_before_anyone_is_preempted) {
    World world(house(20));
    for (uint64_t i = 0; i < 10; i++) {
        world.ask(words(i, 100), 60);
        world.ask(words(i + 50, 100), 60);
        world.run();
    }
    EXPECT_EQ(world.count(EventKind::preempted), 0);
    EXPECT_GT(world.scheduler.pages().cached_bytes(), 0u);
}

TEST(prefix_cache, who_was_preempted_finds_its_own_pages_again) {
    World world(house(14));
    world.ask(words(1, 60), 200);
    world.ask(words(2, 200), 100);
    world.run();
    EXPECT_GT(world.count(EventKind::preempted), 0);
    uint32_t recomputed = 0;
    for (const Event& event : world.events) recomputed += event.recomputed;
    EXPECT_LT(recomputed, 200u);
}

TEST(prefix_cache, a_warm_step_allocates_nothing_though_pages_come_and_go) {
    World world(house(60));
    world.checking = false;
    uint64_t in_steps = 0;
    for (uint64_t round = 0; round < 60; round++) {
        for (uint64_t i = 0; i < 4; i++) world.ask(words(round % 7 * 4 + i, 150), 20);
        world.events.clear();
        for (;;) {
            const uint64_t before = allocations_of_this_thread();
            if (!world.step()) break;
            if (round > 5) in_steps += allocations_of_this_thread() - before;
        }
    }
    EXPECT_EQ(in_steps, 0u);
    EXPECT_LT(world.rows, 60u * 4 * 170);
}

TEST(prefix_cache, a_model_that_went_leaves_no_page_and_the_other_keeps_its_own) {
    House two = house(100);
    two.models.push_back({ModelId{1}, 50'000, 4000, {{0, 10}}});
    World world(std::move(two));
    const auto ask_of = [&](ModelId model) {
        SequenceRequest asked;
        asked.seq = SeqId{++world.last};
        asked.model = model;
        asked.prompt = words(1, 100);
        asked.max_new_tokens = 1;
        EXPECT_TRUE(world.scheduler.admit(std::move(asked), 0));
        return world.run();
    };
    EXPECT_EQ(ask_of(ModelId{0}), 100u);
    EXPECT_EQ(ask_of(ModelId{1}), 100u);
    const uint64_t both = world.scheduler.pages().cached_bytes();
    world.scheduler.forget(ModelId{0});
    world.scheduler.check_invariants();
    EXPECT_EQ(world.scheduler.pages().cached_bytes(), both / 2);
    EXPECT_EQ(ask_of(ModelId{1}), 1u);
    EXPECT_EQ(ask_of(ModelId{0}), 100u) << "its keys and values are computed again";
}

// 64 decode beside 1,000 who wait, 100,000 pages are cached and none are free: each turn evicts.
TEST(prefix_cache, planning_stays_fast_beside_a_full_cache) {
    for (const Policy& policy : {static_chunk(), cadence()}) {
        World world(house(100'500, {.max_rows = 320, .max_running = 64, .prefill_chunk = 256}), policy);
        world.checking = false;
        for (uint64_t i = 0; i < 1'010; i++) {
            world.ask(words(i, 3'190), 1);
            world.run();
            world.events.clear();
        }
        ASSERT_GT(world.scheduler.prefixes()->nodes(), 99'000u);
        for (uint64_t i = 0; i < 1'064; i++) world.ask(words(5'000 + i, 500), 400);
        std::vector<Nanos> took;
        for (int i = 0; i < 1'200; i++) {
            world.events.clear();
            const Nanos begin = steady_now();
            const StepPlan* plan = world.plan();
            took.push_back(steady_now() - begin);
            ASSERT_NE(plan, nullptr);
            world.commit(*plan);
        }
        std::sort(took.begin(), took.end());
        std::printf("%s: a plan takes %.1f us, P99 %.1f us\n", policy.name, static_cast<double>(took[600]) / 1e3,
                    static_cast<double>(took[1188]) / 1e3);
        EXPECT_LT(took[600], 200'000) << "the middle one: a busy machine may disturb the last hundredth";
    }
}

}  // namespace
}  // namespace cadans::sched
