// Goal: a step takes in what pays, and nothing else. Method: costs of which the best choice can be seen.
#include "sched/draft_choice.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "flow/drafter.h"

namespace cadans::sched {
namespace {

/// A tally that has come to `chance` of 1024 (or near) for every match.
DraftTally tally_of(uint32_t chance) {
    DraftTally tally;
    for (uint32_t match = 1; match <= 16; match *= 2) {
        for (int i = 0; i < 400; i++) tally.learn(match, tally.chance(match) < chance);
    }
    return tally;
}

struct Choice {
    explicit Choice(StepCost cost) : costs{cost}, curves(1), shapes(1) {}

    void add(const DraftTally& tally, uint32_t offered, uint32_t match) {
        candidates.push_back({.tally = &tally, .first = 100, .offered = offered, .match = match});
        costs[0].add_drafts(shapes[0], 100, 0);
    }
    void choose(uint32_t rows_left = 200, Micros within = 1'000'000) {
        const auto tokens = static_cast<uint32_t>(candidates.size());
        choose_drafts(candidates, {costs, curves, shapes, tokens, rows_left, within, drafter, passes}, order);
    }

    std::vector<StepCost> costs;
    std::vector<StepCurve> curves;
    std::vector<StepShape> shapes;
    std::vector<DraftCandidate> candidates;
    std::vector<uint32_t> order;
    const StepCost* drafter = nullptr;
    std::array<StepShape, kMostDrafts> passes{};
};

/// Weights take 40 ms, a row 1 ms: 39 drafts are nearly free, but for what the head asks of each.
StepCost wide() {
    StepCost cost;
    cost.weights_ps = 40'000'000'000;
    cost.row_ps = 1'000'000'000;
    cost.logits_ps = 100'000'000;
    return cost;
}

TEST(draft_tally, follows_what_comes) {
    DraftTally tally;
    const uint32_t at_first = tally.chance(5);
    for (int i = 0; i < 200; i++) tally.learn(5, true);
    EXPECT_GT(tally.chance(5), 1000u);
    EXPECT_EQ(tally.chance(4), tally.chance(7)) << "4 to 7 are one kind";
    for (int i = 0; i < 200; i++) tally.learn(5, false);
    EXPECT_LT(tally.chance(5), 24u);
    EXPECT_LT(tally.chance(5), at_first);
    EXPECT_EQ(tally.chance(40), DraftTally().chance(16)) << "others are judged by themselves";
    for (int i = 0; i < 2000; i++) tally.learn(1 + i % 40, i % 3 == 0);
    for (uint32_t match = 1; match < 50; match++) EXPECT_LE(tally.chance(match), DraftTally::kCertain);
}

TEST(draft_choice, likely_guesses_on_a_machine_that_waits_for_weights_all_come_in) {
    const DraftTally sure = tally_of(1000);
    Choice choice(wide());
    choice.add(sure, 15, 20);
    choice.choose();
    EXPECT_EQ(choice.candidates[0].taken, 15u);
    EXPECT_EQ(choice.candidates[0].hold, DraftHold::none);
    EXPECT_EQ(choice.shapes[0].rows, 16u);
    EXPECT_EQ(choice.shapes[0].logits_rows, 16u);
    EXPECT_EQ(choice.shapes[0].decode_context, 0u);
}

TEST(draft_choice, guesses_that_do_not_come_stay_out) {
    const DraftTally never = tally_of(0);
    Choice choice(wide());
    choice.add(never, 15, 20);
    choice.choose();
    EXPECT_EQ(choice.candidates[0].taken, 0u);
    EXPECT_EQ(choice.candidates[0].hold, DraftHold::unlikely);
    EXPECT_EQ(choice.shapes[0].rows, 1u);
    EXPECT_GT(choice.shapes[0].decode_context, 0u);
}

TEST(draft_choice, where_every_row_costs_as_much_as_the_first_nothing_pays) {
    StepCost cost;
    cost.row_ps = 10'000'000'000;
    const DraftTally half = tally_of(512);
    Choice choice(cost);
    choice.add(half, 15, 20);
    choice.choose();
    EXPECT_EQ(choice.candidates[0].taken, 0u);
}

TEST(draft_choice, more_come_in_the_likelier_they_are) {
    uint32_t before = 0;
    for (const uint32_t chance : {200u, 500u, 800u, 950u}) {
        const DraftTally tally = tally_of(chance);
        Choice choice(wide());
        choice.add(tally, 15, 20);
        choice.choose();
        EXPECT_GE(choice.candidates[0].taken, before) << chance;
        before = choice.candidates[0].taken;
    }
    EXPECT_GE(before, 12u);
}

// Goal: no other number of drafts would have been better. Method: all of them, by the formula.
TEST(draft_choice, no_other_length_is_predicted_to_be_better) {
    for (uint64_t seed = 0; seed < 300; seed++) {
        StepCost cost;
        cost.weights_ps = mix64(seed) % 40'000'000'000;
        cost.row_ps = mix64(seed + 1000) % 8'000'000'000;
        cost.logits_ps = mix64(seed + 2000) % 2'000'000'000;
        cost.step_ps = 1 + mix64(seed + 3000) % 1'000'000'000;
        const DraftTally tally = tally_of(static_cast<uint32_t>(mix64(seed + 4000) % 1024));
        Choice choice(cost);
        choice.add(tally, 15, 20);
        choice.choose();
        double best = 0, chosen = 0, chance = 1, tokens = 1;
        for (uint32_t drafts = 0; drafts <= 15; drafts++) {
            StepShape shape;
            cost.add_drafts(shape, 100, drafts);
            const double rate = tokens / static_cast<double>(cost.scaled_ps(shape));
            best = std::max(best, rate);
            if (drafts == choice.candidates[0].taken) chosen = rate;
            chance *= tally.chance(20) / 1024.0;
            tokens += chance;
        }
        // What is hopeless is not looked at, and a gain of less than a 32nd is none.
        EXPECT_GT(chosen, best * 0.93) << seed;
    }
}

// Goal: no other number of a model's guesses would have been better. Method: all of them, by the formula.
TEST(draft_choice, a_draft_models_own_time_counts) {
    uint32_t some = 0, none = 0;
    for (uint64_t seed = 0; seed < 300; seed++) {
        StepCost cost, drafter;
        cost.weights_ps = 10'000'000'000 + mix64(seed) % 40'000'000'000;
        cost.row_ps = mix64(seed + 1000) % 4'000'000'000;
        drafter.weights_ps = mix64(seed + 2000) % 20'000'000'000;
        drafter.step_ps = 1 + mix64(seed + 3000) % 1'000'000'000;
        const ModelTally tally(static_cast<uint32_t>(mix64(seed + 4000) % 1024));
        Choice choice(cost);
        const DraftTally unused;
        choice.add(unused, 15, 0);
        choice.candidates[0].modelled = &tally;
        choice.candidates[0].due = 1 + static_cast<uint32_t>(mix64(seed + 5000) % 3);
        choice.drafter = &drafter;
        choice.choose();
        double best = 0, chosen = 0, chance = 1, tokens = 1;
        for (uint32_t drafts = 0; drafts <= 15; drafts++) {
            StepShape shape;
            cost.add_drafts(shape, 100, drafts);
            double took = static_cast<double>(cost.scaled_ps(shape));
            for (uint32_t pass = 0; pass < drafts; pass++) {
                StepShape own;
                drafter.add_catching_up(own, 101 - (pass == 0 ? choice.candidates[0].due : 1) + pass,
                                        pass == 0 ? choice.candidates[0].due : 1, true);
                took += static_cast<double>(drafter.scaled_ps(own));
            }
            best = std::max(best, tokens / took);
            if (drafts == choice.candidates[0].taken) chosen = tokens / took;
            chance *= tally.chance() / 1024.0;
            tokens += chance;
        }
        EXPECT_GT(chosen, best * 0.93) << seed;
        (choice.candidates[0].taken > 0 ? some : none)++;
        for (uint32_t pass = 0; pass < 15; pass++)
            EXPECT_EQ(choice.passes[pass].rows, pass >= choice.candidates[0].taken ? 0
                                                : pass == 0                        ? choice.candidates[0].due
                                                                                   : 1);
    }
    EXPECT_GT(some, 50u);
    EXPECT_GT(none, 50u);
}

TEST(draft_choice, a_step_keeps_the_gap_and_the_rows) {
    const DraftTally sure = tally_of(1000);
    Choice gap(wide());
    gap.add(sure, 15, 20);
    gap.choose(200, 41'000);
    EXPECT_GT(gap.candidates[0].taken, 0u);
    EXPECT_LT(gap.candidates[0].taken, 15u);
    EXPECT_EQ(gap.candidates[0].hold, DraftHold::gap);
    EXPECT_LE(gap.costs[0].predict(gap.shapes[0]), 41'000);
    Choice rows(wide());
    rows.add(sure, 15, 20);
    rows.add(sure, 15, 20);
    rows.choose(11);
    EXPECT_EQ(rows.candidates[0].taken + rows.candidates[1].taken, 11u);
    EXPECT_EQ(rows.candidates[1].hold, DraftHold::room);
}

TEST(draft_choice, the_likelier_of_two_goes_first_and_none_is_paid_for_by_the_other) {
    const DraftTally sure = tally_of(1000), never = tally_of(10);
    Choice choice(wide());
    choice.add(never, 15, 20);
    choice.add(sure, 15, 20);
    choice.add(sure, 0, 0);
    choice.choose();
    EXPECT_EQ(choice.candidates[0].taken, 0u);
    EXPECT_EQ(choice.candidates[0].hold, DraftHold::unlikely);
    EXPECT_EQ(choice.candidates[1].taken, 15u);
    EXPECT_EQ(choice.candidates[2].hold, DraftHold::no_guess);
}

// The first draft of a step pays for a tile of rows; all together are worth that.
TEST(draft_choice, looks_beyond_a_first_draft_that_alone_would_not_pay) {
    const DraftTally sure = tally_of(1000);
    Choice choice(wide());
    StepShape nine;
    choice.costs[0].add_drafts(nine, 100, 8);
    for (int i = 0; i < 50; i++) choice.curves[0].learn(choice.costs[0], nine, 60'000'000);
    for (int i = 0; i < 8; i++) choice.add(sure, 3, 20);
    choice.choose();
    for (const DraftCandidate& one : choice.candidates) EXPECT_EQ(one.taken, 3u);
}

// A machine whose kernels take four rows at a time: the fifth costs as much as the four before.
TEST(draft_choice, learns_the_steps_of_the_machine_and_stops_before_one_that_does_not_pay) {
    const DraftTally likely = tally_of(700);
    StepCost cost;
    cost.step_ps = 2'000'000'000;
    cost.row_ps = 900'000'000;
    StepCurve curve;
    const auto truth = [](uint32_t rows) { return Nanos{1'000'000} * (1 + 4 * ((rows + 3) / 4)); };
    for (uint32_t i = 0; i < 300; i++) {
        StepShape shape;
        cost.add_drafts(shape, 100, i % 12);
        curve.learn(cost, shape, truth(1 + i % 12));
    }
    for (uint32_t rows = 1; rows <= 12; rows++) {
        StepShape shape;
        cost.add_drafts(shape, 100, rows - 1);
        EXPECT_NEAR(static_cast<double>(curve.nanos(cost, shape)), static_cast<double>(truth(rows)), 0.06 * 13e6)
            << rows;
    }
    Choice choice(cost);
    choice.curves[0] = curve;
    choice.add(likely, 11, 20);
    choice.choose();
    EXPECT_EQ(choice.candidates[0].taken, 3u);
}

TEST(step_curve, one_bad_moment_is_forgotten) {
    const StepCost cost = wide();
    StepCurve curve;
    StepShape one, five;
    cost.add_drafts(one, 100, 0);
    cost.add_drafts(five, 100, 4);
    const uint64_t usual = curve.nanos(cost, five);
    const auto truth = static_cast<Nanos>(curve.nanos(cost, one));
    curve.learn(cost, five, static_cast<Nanos>(100 * usual));
    const uint64_t once = curve.nanos(cost, five);
    EXPECT_GT(once, usual * 5 / 4);
    EXPECT_LT(once, usual * 2) << "a hiccup counts as twice the time, and that by half";
    for (int i = 0; i < 4000; i++) curve.learn(cost, one, truth);
    EXPECT_LT(curve.nanos(cost, five), usual * 11 / 10);
}

TEST(draft_choice, where_nothing_is_predicted_it_must_be_likelier_than_not) {
    const DraftTally likely = tally_of(900), unlikely = tally_of(400);
    Choice choice(StepCost{});
    choice.add(likely, 15, 20);
    choice.add(unlikely, 15, 20);
    choice.choose();
    EXPECT_GT(choice.candidates[0].taken, 2u);
    EXPECT_LT(choice.candidates[0].taken, 8u);
    EXPECT_EQ(choice.candidates[1].taken, 0u);
}

}  // namespace
}  // namespace cadans::sched
