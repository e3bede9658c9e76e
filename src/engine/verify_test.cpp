// Goal: drafts change no token and no bit of an answer. Method: answers drawn one by one, and again with drafts that
// are right, wrong, or right for a while.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <new>

#include "base/testing/allocations.h"
#include "engine/sampler.h"
#include "engine/testing/step_rig.h"
#include "flow/drafter.h"
#include "flow/testing/counting_constraint.h"

namespace cadans::engine {
namespace {

using model::TensorType;
using model::testing::TinyModel;
using testing::StepRig;

constexpr uint32_t kPrompt = 40, kAnswer = 60;

enum class End { none, complete, stuck, failed };

struct Answer {
    std::vector<TokenScore> tokens;
    End end = End::none;
    uint32_t steps = 0, drafted = 0, accepted = 0;
};

/// Draws kAnswer tokens or up to an end. `truth` is the answer without drafts, of which they are made; empty: none.
Answer draw(StepRig& rig, StepRig::Sequence s, const std::vector<TokenScore>& truth, uint64_t seed) {
    Answer out;
    rig.compute(s, 64);
    s.computed--;  // the last token of the prompt is drawn from
    s.scores.clear();
    while (s.scores.size() < kAnswer) {
        uint64_t draws = mix64(seed * 977 + s.scores.size());
        const auto next = [&](uint64_t below) { return (draws = mix64(draws)) % below; };
        const uint64_t count = truth.empty() ? 0 : next(16), right = next(3) == 0 ? 16 : next(16);
        for (uint32_t i = 0; i < count && s.scores.size() + i + 1 < kAnswer; i++) {
            const size_t at = s.scores.size() + i;
            const bool known = i < right && at < truth.size();
            s.drafts.push_back(known ? truth[at].token
                                     : TokenId{static_cast<uint32_t>(next(rig.model().spec().vocab))});
        }
        const size_t drafted = s.drafts.size(), before = s.scores.size();
        const ItemResult got = rig.verify({&s}).items[0];
        out.steps++;
        out.drafted += static_cast<uint32_t>(drafted);
        if (s.scores.size() > before) out.accepted += static_cast<uint32_t>(s.scores.size() - before - 1);
        out.end = got.failed ? End::failed : got.stuck ? End::stuck : got.complete ? End::complete : End::none;
        if (out.end != End::none) break;
    }
    out.tokens = s.scores;
    return out;
}

void expect_same(const Answer& plain, const Answer& drafted, const char* what) {
    EXPECT_EQ(plain.end, drafted.end) << what;
    ASSERT_EQ(plain.tokens.size(), drafted.tokens.size()) << what;
    for (size_t i = 0; i < plain.tokens.size(); i++) {
        const TokenScore &a = plain.tokens[i], &b = drafted.tokens[i];
        ASSERT_EQ(a.token, b.token) << what << ", token " << i;
        ASSERT_EQ(std::memcmp(&a.logprob, &b.logprob, sizeof a.logprob), 0) << what << ", token " << i;
        ASSERT_EQ(a.top_count, b.top_count) << what;
        ASSERT_EQ(std::memcmp(a.top, b.top, a.top_count * sizeof a.top[0]), 0) << what << ", token " << i;
    }
}

StepRig::Sequence asked(StepRig& rig, const SamplingParams& params) {
    StepRig::Sequence s = rig.sequence(5, kPrompt + kAnswer + kMostDrafts + 1);
    s.tokens.resize(kPrompt);
    s.sampling = params;
    return s;
}

const std::vector<SamplingParams>& all_sampling() {
    static const std::vector<SamplingParams> all = {
        {.temperature = 0, .logprobs = true, .top_logprobs = 5},
        {.temperature = 1, .seed = 3, .logprobs = true, .top_logprobs = 20},
        {.temperature = 5, .seed = 4},
        {.temperature = 0.8F, .top_k = 7, .top_p = 0.9F, .min_p = 0.01F, .seed = 5, .logprobs = true},
        {.temperature = 0, .repeat_penalty = 1.3F, .repeat_last_n = 8},
        {.temperature = 1, .repeat_penalty = 1.1F, .presence_penalty = 1, .frequency_penalty = 0.5F, .seed = 6},
    };
    return all;
}

class Verify : public ::testing::TestWithParam<TinyModel> {};

TEST_P(Verify, the_answer_is_that_without_drafts_bit_for_bit) {
    StepRig rig(GetParam(), 2, *kernels::choose_isa());
    uint32_t accepted = 0, rejected = 0, saved = 0;
    for (const SamplingParams& params : all_sampling()) {
        const Answer plain = draw(rig, asked(rig, params), {}, 0);
        ASSERT_EQ(plain.tokens.size(), kAnswer);
        for (uint64_t seed = 1; seed < 5; seed++) {
            const Answer drafted = draw(rig, asked(rig, params), plain.tokens, seed);
            expect_same(plain, drafted, "drafts");
            accepted += drafted.accepted;
            rejected += drafted.drafted - drafted.accepted;
            saved += plain.steps - drafted.steps;
        }
    }
    EXPECT_GT(accepted, 200u);
    EXPECT_GT(rejected, 200u);
    EXPECT_EQ(saved, accepted) << "every accepted draft is a step less";
}

TEST_P(Verify, a_constraint_is_kept_and_completed_where_it_is_without_drafts) {
    StepRig rig(GetParam(), 2, *kernels::choose_isa());
    for (const uint32_t length : {1u, 7u, 31u}) {
        for (const SamplingParams& params : all_sampling()) {
            CountingConstraint plain_form(length, 5, rig.model().spec().vocab);
            StepRig::Sequence s = asked(rig, params);
            s.constraint = &plain_form;
            const Answer plain = draw(rig, s, {}, 0);
            ASSERT_EQ(plain.end, End::complete);
            ASSERT_EQ(plain.tokens.size(), length);
            for (uint64_t seed = 1; seed < 4; seed++) {
                CountingConstraint form(length, 5, rig.model().spec().vocab);
                s.constraint = &form;
                expect_same(plain, draw(rig, s, plain.tokens, seed), "a constraint");
                EXPECT_EQ(form.wrong, 0u) << "no token is taken in that may not come";
            }
        }
    }
}

/// Fails at its fifth token: gets no memory for a mask or for a state, or lets nothing come.
class BrokenConstraint final : public Constraint {
  public:
    enum class Way { mask, state, nothing };
    explicit BrokenConstraint(Way way) : way_(way) {}

    ConstraintState start() const noexcept override { return 0; }
    bool allowed(ConstraintState at, std::span<uint64_t> bits) override {
        if (at == 4 && way_ == Way::mask) throw std::bad_alloc();
        std::fill(bits.begin(), bits.end(), 0xFFFF);
        return at != 4 || way_ != Way::nothing;
    }
    ConstraintState after(ConstraintState at, TokenId) override {
        if (at == 4 && way_ == Way::state) throw std::bad_alloc();
        return at + 1;
    }
    bool complete(ConstraintState) override { return false; }

  private:
    Way way_;
};

TEST_P(Verify, what_goes_wrong_behind_a_draft_goes_wrong_where_it_would_without) {
    StepRig rig(GetParam(), 2, *kernels::choose_isa());
    for (const auto way : {BrokenConstraint::Way::mask, BrokenConstraint::Way::state, BrokenConstraint::Way::nothing}) {
        BrokenConstraint broken(way);
        StepRig::Sequence s = asked(rig, {.temperature = 1, .seed = 8});
        s.constraint = &broken;
        const Answer plain = draw(rig, s, {}, 0);
        EXPECT_EQ(plain.tokens.size(), 4u);
        EXPECT_EQ(plain.end, way == BrokenConstraint::Way::state ? End::failed : End::stuck);
        // Drafts that are right, and go on beyond the place.
        std::vector<TokenScore> truth = plain.tokens;
        truth.resize(16);
        for (uint64_t seed = 1; seed < 20; seed++) expect_same(plain, draw(rig, s, truth, seed), "what goes wrong");
    }
}

TEST_P(Verify, a_batch_of_drafted_and_plain_ones_draws_what_each_does_alone) {
    StepRig rig(GetParam(), 2, *kernels::choose_isa());
    std::vector<Answer> alone;
    std::vector<StepRig::Sequence> together;
    for (const SamplingParams& params : all_sampling()) {
        alone.push_back(draw(rig, asked(rig, params), {}, 0));
        StepRig::Sequence s = asked(rig, params);
        rig.compute(s, 17);
        s.computed--;
        s.scores.clear();
        together.push_back(std::move(s));
    }
    for (uint64_t step = 0; step < 20; step++) {
        std::vector<StepRig::Sequence*> all;
        for (size_t i = 0; i < together.size(); i++) {
            StepRig::Sequence& s = together[i];
            if (s.scores.size() >= kAnswer) continue;
            const uint64_t count = mix64(step * 31 + i) % 10;
            for (size_t at = s.scores.size(); s.drafts.size() < count && at + 1 < kAnswer; at++)
                s.drafts.push_back(mix64(step + at + i) % 5 == 0 ? TokenId{1} : alone[i].tokens[at].token);
            all.push_back(&s);
        }
        if (!all.empty()) rig.verify(all);
    }
    for (size_t i = 0; i < together.size(); i++) {
        ASSERT_GT(together[i].scores.size(), 20u);
        for (size_t t = 0; t < together[i].scores.size(); t++)
            ASSERT_EQ(together[i].scores[t].token, alone[i].tokens[t].token) << i << " " << t;
    }
}

/// As draw(), with guesses of the rig's second model, which now and then sits a step out and catches up in pieces.
Answer draw_with_model(StepRig& rig, StepRig::Sequence s, uint64_t seed) {
    Answer out;
    rig.compute(s, 64);
    s.computed--;
    s.scores.clear();
    while (s.scores.size() < kAnswer) {
        uint64_t draws = mix64(seed * 977 + s.scores.size());
        const auto next = [&](uint64_t below) { return (draws = mix64(draws)) % below; };
        const auto known = static_cast<uint32_t>(s.tokens.size()), due = known - s.draft_computed;
        const uint64_t does = next(4);
        if (does > 0) s.draft_rows = does == 1 ? 1 + static_cast<uint32_t>(next(due)) : due;
        if (s.draft_rows == due) s.drafts.assign(std::min<size_t>(next(16), kAnswer - s.scores.size() - 1), TokenId{0});
        const size_t drafted = s.drafts.size(), before = s.scores.size();
        const StepResult& result = rig.verify({&s});
        EXPECT_LE(result.drafting, result.end - result.begin);
        out.steps++;
        out.drafted += static_cast<uint32_t>(drafted);
        out.accepted += static_cast<uint32_t>(s.scores.size() - before - 1);
        const ItemResult& got = result.items[0];
        out.end = got.failed ? End::failed : got.stuck ? End::stuck : got.complete ? End::complete : End::none;
        if (out.end != End::none) break;
    }
    out.tokens = s.scores;
    return out;
}

TEST_P(Verify, a_model_drafts_with_the_noise_of_the_position_and_changes_no_bit) {
    for (const bool same : {true, false}) {
        StepRig rig(GetParam(), 2, *kernels::choose_isa());
        TinyModel shape = GetParam();
        if (!same) shape.layers--;
        rig.add_drafter(shape);
        for (const SamplingParams& params : all_sampling()) {
            const Answer plain = draw(rig, asked(rig, params), {}, 0);
            for (uint64_t seed = 1; seed < 4; seed++) {
                const Answer drafted = draw_with_model(rig, asked(rig, params), seed);
                expect_same(plain, drafted, same ? "its own weights" : "fewer layers");
                EXPECT_GT(drafted.drafted, 10u);
                if (same) {
                    EXPECT_EQ(drafted.accepted, drafted.drafted) << "equal logits and equal noise draw equal tokens";
                }
            }
        }
    }
}

std::string name_of(const ::testing::TestParamInfo<TinyModel>& shape) {
    return std::string(shape.param.family) + "_" + std::string(model::tensor_type_info(shape.param.type).name);
}

INSTANTIATE_TEST_SUITE_P(
    families, Verify,
    ::testing::Values(TinyModel{.family = "llama", .type = TensorType::q8_0},
                      TinyModel{.family = "qwen3", .type = TensorType::q4_0},
                      TinyModel{.family = "gemma3", .type = TensorType::q8_0, .layers = 7, .heads = 4, .kv_heads = 1}),
    name_of);

TEST(verify, allocates_nothing_once_it_is_warm) {
    StepRig rig({.family = "llama", .type = TensorType::q8_0}, 2, *kernels::choose_isa());
    StepRig::Sequence s = asked(rig, {.temperature = 1});
    s.tokens.reserve(1000);
    s.scores.reserve(1000);
    s.drafts.reserve(20);
    const std::vector<StepRig::Sequence*> all = {&s};
    uint64_t before = 0;
    for (uint32_t i = 0; i < 40; i++) {
        if (i == 20) before = allocations_of_all_threads();
        s.drafts.assign(kMostDrafts, TokenId{i});
        rig.verify(all);
        s.tokens.resize(kPrompt);
        s.computed = kPrompt - 1;
    }
    EXPECT_EQ(allocations_of_all_threads() - before, 0u);
}

TEST(verify, a_step_with_a_draft_model_allocates_nothing_once_it_is_warm) {
    const TinyModel shape{.family = "llama", .type = TensorType::q8_0};
    StepRig rig(shape, 2, *kernels::choose_isa());
    rig.add_drafter(shape);
    StepRig::Sequence s = asked(rig, {.temperature = 1});
    s.tokens.reserve(1000);
    s.scores.reserve(1000);
    s.drafts.reserve(20);
    const std::vector<StepRig::Sequence*> all = {&s};
    uint64_t before = 0;
    for (uint32_t i = 0; i < 40; i++) {
        if (i == 20) before = allocations_of_all_threads();
        s.drafts.assign(1 + i % kMostDrafts, TokenId{0});
        s.draft_computed = i % kPrompt;
        s.draft_rows = kPrompt - s.draft_computed;
        rig.verify(all);
        s.tokens.resize(kPrompt);
        s.computed = kPrompt - 1;
    }
    EXPECT_EQ(allocations_of_all_threads() - before, 0u);
}

// Goal: sampled tokens have the model's own distribution, also where several are drawn in one step. Method: 200,000 of
// them, two by two behind one prompt, against the probabilities that scoring gives: by chi-square over all pairs. The
// same draws with the first token's noise used again for the second must be found out.
TEST(verify, pairs_of_sampled_tokens_have_the_models_distribution) {
    constexpr uint32_t kPairs = 100'000, kLanes = 32, kShort = 6;
    StepRig rig({.family = "llama", .type = TensorType::f32}, 2, *kernels::choose_isa());
    const uint32_t vocab = rig.model().spec().vocab;
    const std::vector<TokenId> prompt = rig.sequence(9, kShort).tokens;

    // log_probability[a][b]: of b behind the prompt and a; [vocab][a]: of a behind the prompt.
    std::vector<std::vector<float>> log_probability(vocab + 1, std::vector<float>(vocab));
    StepRig::Sequence scored = rig.sequence(9, kShort + 2);
    for (uint32_t a = 0; a < vocab; a++) {
        for (uint32_t b = 0; b < vocab; b++) {
            scored.tokens = prompt;
            scored.tokens.push_back(TokenId{a});
            scored.tokens.push_back(TokenId{b});
            scored.computed = 0;
            scored.scores.clear();
            rig.compute(scored, kShort + 2);
            log_probability[vocab][a] = scored.scores[kShort - 1].logprob;
            log_probability[a][b] = scored.scores[kShort].logprob;
        }
    }

    const auto chi_square = [&](const std::vector<uint32_t>& pairs, double& freedom) {
        double sum = 0, rest_expected = 0, rest_seen = 0;
        freedom = 0;
        for (uint32_t a = 0; a < vocab; a++) {
            for (uint32_t b = 0; b < vocab; b++) {
                const double expected = kPairs * std::exp(static_cast<double>(log_probability[vocab][a]) +
                                                          static_cast<double>(log_probability[a][b]));
                const double seen = pairs[a * vocab + b];
                if (expected < 5) {
                    rest_expected += expected;
                    rest_seen += seen;
                    continue;
                }
                sum += (seen - expected) * (seen - expected) / expected;
                freedom++;
            }
        }
        if (rest_expected > 5) sum += (rest_seen - rest_expected) * (rest_seen - rest_expected) / rest_expected;
        return sum;
    };

    std::vector<uint32_t> drawn(size_t{vocab} * vocab), reused(size_t{vocab} * vocab);
    std::vector<StepRig::Sequence> lanes;
    for (uint32_t i = 0; i < kLanes; i++) {
        lanes.push_back(rig.sequence(9, kShort + kMostDrafts));
        lanes.back().tokens = prompt;
        rig.compute(lanes.back(), kShort);
    }
    Sampler sampler(kernels::kernel_table(*kernels::choose_isa()), vocab, 256);
    uint32_t in_one_step = 0;
    for (uint32_t first = 0; first < kPairs; first += kLanes) {
        std::vector<StepRig::Sequence*> all;
        for (uint32_t i = 0; i < kLanes; i++) {
            StepRig::Sequence& s = lanes[i];
            s.tokens = prompt;
            s.computed = kShort - 1;
            s.scores.clear();
            s.sampling = {.temperature = 1, .seed = first + i};
            // A guess of the first token: every one is tried, so that every second token is also drawn behind a draft.
            s.drafts = {TokenId{(first / kLanes + i) % vocab}, TokenId{0}};
            all.push_back(&s);
        }
        while (!all.empty()) {
            rig.verify(all);
            for (const StepRig::Sequence* s : all) in_one_step += s->scores.size() >= 2 && s->computed > kShort;
            std::erase_if(all, [](const StepRig::Sequence* s) { return s->scores.size() >= 2; });
        }
        for (uint32_t i = 0; i < kLanes; i++) {
            const StepRig::Sequence& s = lanes[i];
            const uint32_t a = index(s.scores[0].token), b = index(s.scores[1].token);
            drawn[a * vocab + b]++;
            TokenScore again;
            sampler.sample(log_probability[a].data(), s.sampling, prompt, again);  // as if b stood where a does
            reused[a * vocab + index(again.token)]++;
        }
    }
    EXPECT_GT(in_one_step, kPairs / 100);
    double freedom = 0;
    const double good = chi_square(drawn, freedom), bad = chi_square(reused, freedom);
    ASSERT_GT(freedom, 100);
    const double limit = freedom + 5 * std::sqrt(2 * freedom);  // one in some millions of right samplers fails
    std::printf("chi-square %.0f of %.0f cells (limit %.0f); with noise used twice %.0f\n", good, freedom, limit, bad);
    EXPECT_LT(good, limit);
    EXPECT_GT(bad, 10 * limit);
}

}  // namespace
}  // namespace cadans::engine
