// Goal: a constraint decides which tokens come and nothing else. Method: answers that a counting constraint foretells.
#include <gtest/gtest.h>

#include <new>

#include "engine/testing/step_rig.h"
#include "flow/testing/counting_constraint.h"

namespace cadans::engine {
namespace {

using model::TensorType;
using model::testing::TinyModel;
using testing::StepRig;

constexpr uint32_t kLength = 12;

const TinyModel kShape = {.family = "llama", .type = TensorType::q8_0};

struct Answer {
    std::vector<TokenId> tokens;
    bool complete = false, stuck = false, failed = false;
};

/// Draws until each sequence is at its end; some sit out some steps, by `turns`.
std::vector<Answer> draw(StepRig& rig, std::vector<StepRig::Sequence*> all, uint64_t turns = 0) {
    std::vector<Answer> answers(all.size());
    for (uint32_t step = 0; step < 200; step++) {
        std::vector<uint32_t> counts;
        for (size_t i = 0; i < all.size(); i++) {
            const bool over = answers[i].complete || answers[i].stuck || answers[i].failed;
            const bool sits_out = turns != 0 && mix64(turns + step * 64 + i) % 3 == 0;
            counts.push_back(over || sits_out ? 0 : static_cast<uint32_t>(all[i]->tokens.size()) - all[i]->computed);
        }
        const StepResult& result = rig.step(all, counts, true);
        for (const ItemResult& item : result.items) {
            StepRig::Sequence& s = *all[index(item.seq)];
            Answer& answer = answers[index(item.seq)];
            answer.stuck = item.stuck;
            answer.failed = item.failed;
            if (item.stuck) continue;
            answer.complete = item.complete;
            s.constraint_at = item.constraint_at;
            for (uint32_t t = item.accepted_begin; t < item.accepted_end; t++) {
                s.tokens.push_back(result.accepted[t].token);
                answer.tokens.push_back(result.accepted[t].token);
            }
        }
    }
    return answers;
}

StepRig::Sequence asked(StepRig& rig, uint64_t seed, Constraint& constraint, float temperature) {
    StepRig::Sequence s = rig.sequence(seed, 20);
    for (uint32_t p = 0; p < 2; p++) s.pages.push_back(rig.sequence(seed, 1).pages[0]);
    s.sampling.seed = seed;
    s.sampling.temperature = temperature;
    s.constraint = &constraint;
    return s;
}

TEST(constraint, decides_what_is_drawn_under_every_sampling) {
    StepRig rig(kShape, 2, *kernels::choose_isa());
    const uint32_t vocab = rig.model().spec().vocab;
    for (const SamplingParams& params :
         {SamplingParams{.temperature = 0}, SamplingParams{.temperature = 1}, SamplingParams{.temperature = 5},
          SamplingParams{.top_k = 3}, SamplingParams{.top_p = 0.3F}, SamplingParams{.min_p = 0.5F},
          SamplingParams{.repeat_penalty = 50, .presence_penalty = 2, .frequency_penalty = 2}}) {
        CountingConstraint constraint(kLength, 17, vocab);
        StepRig::Sequence s = asked(rig, 3, constraint, params.temperature);
        s.sampling = params;
        const Answer answer = draw(rig, {&s})[0];
        EXPECT_TRUE(answer.complete);
        EXPECT_EQ(answer.tokens.size(), kLength);
        EXPECT_EQ(constraint.wrong, 0u);
        EXPECT_EQ(constraint.asked, kLength) << "one mask a drawn token";
    }
}

TEST(constraint, gives_the_same_tokens_alone_and_in_a_batch_that_shares_it) {
    StepRig rig(kShape, 2, *kernels::choose_isa());
    const uint32_t vocab = rig.model().spec().vocab;
    std::vector<Answer> alone;
    for (uint64_t seed = 1; seed <= 8; seed++) {
        CountingConstraint constraint(kLength, 5, vocab);
        StepRig::Sequence s = asked(rig, seed, constraint, 1);
        alone.push_back(draw(rig, {&s})[0]);
    }
    CountingConstraint shared(kLength, 5, vocab);
    for (const uint64_t turns : {0, 1, 2}) {
        std::vector<StepRig::Sequence> mates;
        for (uint64_t seed = 1; seed <= 8; seed++) mates.push_back(asked(rig, seed, shared, 1));
        std::vector<StepRig::Sequence*> all;
        for (StepRig::Sequence& s : mates) all.push_back(&s);
        const std::vector<Answer> together = draw(rig, all, turns);
        for (size_t i = 0; i < alone.size(); i++) EXPECT_EQ(together[i].tokens, alone[i].tokens) << i;
    }
    EXPECT_EQ(shared.wrong, 0u);
}

TEST(constraint, without_a_token_that_may_come_the_sequence_is_stuck_and_no_other) {
    StepRig rig(kShape, 2, *kernels::choose_isa());
    const uint32_t vocab = rig.model().spec().vocab;
    CountingConstraint good(kLength, 5, vocab), bad(kLength, 5, 3);  // its fourth token would be beyond its vocabulary
    StepRig::Sequence a = asked(rig, 1, good, 1), b = asked(rig, 2, bad, 1);
    const std::vector<Answer> answers = draw(rig, {&a, &b});
    EXPECT_TRUE(answers[0].complete);
    EXPECT_TRUE(answers[1].stuck);
    EXPECT_EQ(answers[1].tokens.size(), 3u);
}

/// Gets no memory for the mask of its third token.
class StarvedConstraint final : public Constraint {
  public:
    ConstraintState start() const noexcept override { return 0; }
    bool allowed(ConstraintState at, std::span<uint64_t> bits) override {
        if (at == 2) throw std::bad_alloc();
        std::fill(bits.begin(), bits.end(), 1);
        return true;
    }
    ConstraintState after(ConstraintState at, TokenId) override { return at + 1; }
    bool complete(ConstraintState) override { return false; }
};

TEST(constraint, without_memory_for_a_mask_its_sequence_ends_and_no_other) {
    StepRig rig(kShape, 2, *kernels::choose_isa());
    CountingConstraint good(kLength, 5, rig.model().spec().vocab);
    StarvedConstraint starved;
    StepRig::Sequence a = asked(rig, 1, good, 1), b = asked(rig, 2, starved, 1);
    const std::vector<Answer> answers = draw(rig, {&a, &b});
    EXPECT_TRUE(answers[0].complete);
    EXPECT_TRUE(answers[1].stuck);
    EXPECT_EQ(answers[1].tokens.size(), 2u);
}

}  // namespace
}  // namespace cadans::engine
