// Choosing tokens: ties, nonsense, and noise that follows the law it claims.
#include <gtest/gtest.h>

#include "kernels/testing/emulated512.h"

namespace cadans::kernels {

TEST(choose, takes_the_lowest_index_among_equals) {
    for (const KernelTable* table : test::all_tables())
        for (const size_t n : {1u, 15u, 16u, 17u, 100u})
            for (size_t at = 0; at < n; ++at) {
                std::vector<float> x(n, -1.0f);
                x[at] = 2.0f;
                x[n - 1] = 2.0f;
                EXPECT_EQ(table->argmax(x.data(), n), at) << table->name;
            }
}

TEST(choose, never_takes_a_nan) {
    std::vector<float> x(40, NAN);
    for (const KernelTable* table : test::all_tables()) {
        EXPECT_EQ(table->argmax(x.data(), x.size()), 0u);
        x[33] = -5.0f;
        EXPECT_EQ(table->argmax(x.data(), x.size()), 33u);
        x[33] = NAN;
    }
}

TEST(choose, takes_nothing_when_nothing_reaches_the_threshold) {
    const std::vector<float> x(40, 1.0f);
    for (const KernelTable* table : test::all_tables())
        EXPECT_EQ(table->gumbel_argmax(x.data(), x.size(), 1.0f, 2.0f, 7), x.size());
}

// Counts of many draws against softmax; 5 standard deviations.
TEST(choose, draws_from_softmax_and_alike_in_every_table) {
    const std::vector<float> x = {1.0f, -2.0f, 0.5f, 3.0f, 2.0f, 2.9f, -9.0f, 0.0f,  1.0f, 1.5f,
                                  0.2f, -1.0f, 2.5f, 2.5f, 0.1f, 0.3f, 1.1f,  -0.5f, 2.0f};
    const float inv_temperature = 0.8f, threshold = 0.0f;
    std::vector<double> p;
    double total = 0.0;
    for (const float v : x) {
        p.push_back(v >= threshold ? std::exp(static_cast<double>(v * inv_temperature)) : 0.0);
        total += p.back();
    }
    const size_t draws = 40000;
    std::vector<size_t> counts(x.size());
    for (size_t i = 0; i < draws; ++i) {
        const uint64_t key = noise_key(99, 0, i);
        const auto tables = test::all_tables();
        const size_t token = tables.back()->gumbel_argmax(x.data(), x.size(), inv_temperature, threshold, key);
        if (i < 2000) {
            for (const KernelTable* table : tables)
                ASSERT_EQ(table->gumbel_argmax(x.data(), x.size(), inv_temperature, threshold, key), token);
        }
        ASSERT_LT(token, x.size());
        ++counts[token];
    }
    for (size_t i = 0; i < x.size(); ++i) {
        const double mean = draws * p[i] / total;
        EXPECT_NEAR(static_cast<double>(counts[i]), mean, 5.0 * std::sqrt(mean) + 1e-9) << i;
    }
}

TEST(choose, a_tokens_noise_does_not_depend_on_how_many_there_are) {
    test::Numbers numbers(31);
    const auto x = numbers.floats(1000);
    for (const KernelTable* table : test::all_tables())
        for (uint64_t key = 0; key < 200; ++key) {
            const size_t token = table->gumbel_argmax(x.data(), x.size(), 1.0f, -INFINITY, key << 32 | 5);
            EXPECT_EQ(table->gumbel_argmax(x.data(), token + 1, 1.0f, -INFINITY, key << 32 | 5), token);
        }
}

}  // namespace cadans::kernels
