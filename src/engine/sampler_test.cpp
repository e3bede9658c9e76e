#include "engine/sampler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/random.h"

namespace cadans::engine {
namespace {

constexpr uint32_t kVocab = 1000;

std::vector<float> made_up_logits(uint64_t seed) {
    std::vector<float> logits;
    for (uint32_t i = 0; i < kVocab; i++)
        logits.push_back(static_cast<float>(mix64(seed * 7919 + i) % 20'000) / 1000.0F - 12.0F);
    return logits;
}

class SamplerTest : public ::testing::Test {
  protected:
    Sampler sampler{kernels::kernel_table(*kernels::choose_isa()), kVocab, 4096};
    std::vector<TokenId> known{10, TokenId{3}};

    uint32_t draw(const std::vector<float>& logits, const SamplingParams& params) {
        TokenScore out;
        EXPECT_TRUE(sampler.sample(logits.data(), params, known, out));
        return index(out.token);
    }
    /// How often each token comes in `n` draws with different seeds.
    std::vector<uint32_t> histogram(const std::vector<float>& logits, SamplingParams params, uint32_t n) {
        std::vector<uint32_t> counts(kVocab);
        for (params.seed = 0; params.seed < n; params.seed++) counts[draw(logits, params)]++;
        return counts;
    }
};

TEST_F(SamplerTest, greedy_takes_the_largest_and_the_lowest_of_equals) {
    std::vector<float> logits(kVocab, 0.0F);
    logits[700] = logits[300] = 5.0F;
    EXPECT_EQ(draw(logits, {.temperature = 0}), 300u);
}

TEST_F(SamplerTest, a_temperature_near_0_is_greedy) {
    auto logits = made_up_logits(3);
    logits[900] = 30.0F;
    for (const float temperature : {1e-3F, 1e-6F, 1e-7F, 1e-20F, 1e-38F, 1e-45F}) {
        EXPECT_EQ(draw(logits, {.temperature = temperature}), 900u) << temperature;
        EXPECT_EQ(draw(logits, {.temperature = temperature, .top_k = 40, .top_p = 0.9F, .min_p = 0.1F}), 900u);
    }
}

TEST_F(SamplerTest, the_same_seed_choice_and_position_draw_the_same_token) {
    const auto logits = made_up_logits(1);
    SamplingParams params{.seed = 5};
    const uint32_t first = draw(logits, params);
    for (int i = 0; i < 10; i++) EXPECT_EQ(draw(logits, params), first);
    uint32_t others = 0;
    for (params.choice = 1; params.choice < 20; params.choice++) others += draw(logits, params) != first;
    EXPECT_GT(others, 0u);
}

TEST_F(SamplerTest, draws_follow_the_softmax) {
    std::vector<float> logits(kVocab, -1e4F);
    const float values[] = {0.0F, 1.0F, 2.0F, -1.0F, 0.5F};
    double total = 0;
    for (uint32_t i = 0; i < 5; i++) logits[i * 100] = values[i], total += std::exp(values[i] / 0.8);
    constexpr uint32_t kDraws = 50'000;
    const auto counts = histogram(logits, {.temperature = 0.8F}, kDraws);
    double chi_square = 0;
    for (uint32_t i = 0; i < 5; i++) {
        const double expected = kDraws * std::exp(values[i] / 0.8) / total;
        chi_square += (counts[i * 100] - expected) * (counts[i * 100] - expected) / expected;
    }
    EXPECT_LT(chi_square, 18.5);  // 4 degrees of freedom, one in a thousand
}

TEST_F(SamplerTest, top_k_keeps_the_k_best) {
    const auto logits = made_up_logits(2);
    std::vector<float> sorted = logits;
    std::sort(sorted.rbegin(), sorted.rend());
    const auto counts = histogram(logits, {.temperature = 5.0F, .top_k = 3}, 500);
    for (uint32_t i = 0; i < kVocab; i++)
        if (counts[i] > 0) {
            EXPECT_GE(logits[i], sorted[2]);
        }
    EXPECT_EQ(draw(logits, {.top_k = 1}), draw(logits, {.temperature = 0}));
}

TEST_F(SamplerTest, top_p_keeps_the_fewest_that_hold_the_share) {
    std::vector<float> logits(kVocab, -50.0F);
    const double shares[] = {0.5, 0.3, 0.15, 0.05};
    for (uint32_t i = 0; i < 4; i++) logits[10 + i] = static_cast<float>(std::log(shares[i]));
    const auto kept = [&](float top_p, uint32_t top_k) {
        const auto counts = histogram(logits, {.top_k = top_k, .top_p = top_p}, 3000);
        uint32_t n = 0;
        for (const uint32_t count : counts) n += count > 0;
        return n;
    };
    EXPECT_EQ(kept(0.45F, 0), 1u);
    EXPECT_EQ(kept(0.7F, 0), 2u);
    EXPECT_EQ(kept(0.9F, 0), 3u);
    EXPECT_EQ(kept(0.99F, 0), 4u);
    EXPECT_EQ(kept(0.85F, 3), 3u);  // of three kept by top-k: 0.53, 0.32, 0.16
    EXPECT_EQ(kept(0.80F, 3), 2u);
    EXPECT_EQ(kept(0.0F, 0), 1u);
}

TEST_F(SamplerTest, min_p_measures_against_the_best) {
    std::vector<float> logits(kVocab, -50.0F);
    logits[1] = 0.0F, logits[2] = static_cast<float>(std::log(0.2)), logits[3] = static_cast<float>(std::log(0.05));
    const auto counts = histogram(logits, {.min_p = 0.1F}, 2000);
    EXPECT_GT(counts[1], 0u);
    EXPECT_GT(counts[2], 0u);
    EXPECT_EQ(counts[3], 0u);
}

TEST_F(SamplerTest, a_forbidden_token_never_comes) {
    const auto logits = made_up_logits(3);
    const uint32_t best = draw(logits, {.temperature = 0});
    SamplingParams params{.temperature = 0, .logit_bias = {{TokenId{best}, -std::numeric_limits<float>::infinity()}}};
    EXPECT_NE(draw(logits, params), best);
    params.temperature = 100.0F;
    EXPECT_EQ(histogram(logits, params, 3000)[best], 0u);
    params.repeat_penalty = 2.0F;
    EXPECT_EQ(histogram(logits, params, 3000)[best], 0u);
}

TEST_F(SamplerTest, penalties_push_down_what_was_said) {
    std::vector<float> logits(kVocab, 0.0F);
    logits[3] = 2.0F;  // said ten times
    logits[4] = 1.5F;
    EXPECT_EQ(draw(logits, {.temperature = 0}), 3u);
    EXPECT_EQ(draw(logits, {.temperature = 0, .repeat_penalty = 1.5F}), 4u);
    EXPECT_EQ(draw(logits, {.temperature = 0, .presence_penalty = 0.6F}), 4u);
    EXPECT_EQ(draw(logits, {.temperature = 0, .frequency_penalty = 0.06F}), 4u);
    EXPECT_EQ(draw(logits, {.temperature = 0, .repeat_last_n = 0, .presence_penalty = 0.6F}), 3u);
}

TEST_F(SamplerTest, log_probabilities_are_those_of_the_raw_logits) {
    std::vector<float> logits(kVocab, -100.0F);
    for (uint32_t i = 0; i < 4; i++) logits[i] = static_cast<float>(std::log(0.1 * (i + 1)));
    SamplingParams params{.temperature = 0, .logit_bias = {{TokenId{0}, 50.0F}}, .logprobs = true, .top_logprobs = 3};
    TokenScore out;
    ASSERT_TRUE(sampler.sample(logits.data(), params, known, out));
    EXPECT_EQ(index(out.token), 0u);
    EXPECT_NEAR(out.logprob, std::log(0.1), 1e-5);
    ASSERT_EQ(out.top_count, 3);
    EXPECT_EQ(index(out.top[0].token), 3u);
    EXPECT_NEAR(out.top[0].logprob, std::log(0.4), 1e-5);
}

TEST_F(SamplerTest, refuses_logits_that_are_no_numbers) {
    for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
        auto logits = made_up_logits(4);
        logits[500] = bad;
        TokenScore out;
        EXPECT_FALSE(sampler.sample(logits.data(), {}, known, out));
        EXPECT_FALSE(sampler.score(logits.data(), TokenId{1}, 5, out));
    }
}

}  // namespace
}  // namespace cadans::engine
