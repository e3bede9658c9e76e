#include "kernels/exact_math.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace cadans::kernels {

TEST(exact_math, agrees_with_libm) {
    for (double x = -30.0; x < 30.0; x += 0.0371) {
        EXPECT_NEAR(exact_exp(x) / std::exp(x), 1.0, 2e-15) << x;
        EXPECT_NEAR(exact_log(std::exp(x)), std::log(std::exp(x)), 4e-15 * std::fmax(1.0, std::fabs(x))) << x;
    }
    for (double x = -200000.0; x < 1000000.0; x = x * 0.9 + 100000.37)
        for (double d = 0.0; d < 7.0; d += 0.01) {
            EXPECT_NEAR(exact_sin(x + d), std::sin(x + d), 2e-15) << x + d;
            EXPECT_NEAR(exact_cos(x + d), std::cos(x + d), 2e-15) << x + d;
        }
    EXPECT_EQ(exact_exp(0.0), 1.0);
    EXPECT_EQ(exact_sin(0.0), 0.0);
    EXPECT_EQ(exact_cos(0.0), 1.0);
}

TEST(exact_math, turns_positions_into_angles) {
    std::vector<double> frequencies(32);
    rope_frequencies(10000.0, 64, frequencies.data());
    for (size_t i = 0; i < 32; ++i)
        EXPECT_NEAR(frequencies[i] / std::pow(10000.0, -static_cast<double>(i) / 32.0), 1.0, 1e-14);
    const std::vector<float> factors(32, 2.0f);
    std::vector<float> cos(32), sin(32);
    for (const double position : {0.0, 1.0, 511.0, 131071.0}) {
        rope_row(position, frequencies.data(), factors.data(), 32, 1.5, cos.data(), sin.data());
        for (size_t i = 0; i < 32; ++i) {
            EXPECT_NEAR(cos[i], 1.5 * std::cos(position * frequencies[i] / 2.0), 1e-7);
            EXPECT_NEAR(sin[i], 1.5 * std::sin(position * frequencies[i] / 2.0), 1e-7);
        }
    }
}

}  // namespace cadans::kernels
