#include "model/finite_weights.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/random.h"

namespace cadans::model {
namespace {

using kernels::WeightType;

std::vector<std::byte> zeros(WeightType type) {
    return std::vector<std::byte>(std::max<size_t>(kernels::type_info(type).block_bytes, 4));
}

}  // namespace

TEST(finite_weights, counts_each_scale_and_minimum_that_is_not) {
    for (const kernels::TypeInfo& info : kernels::kTypes)
        for (const int at : {info.scale_at, info.min_at}) {
            if (at < 0) continue;
            auto block = zeros(info.type);
            EXPECT_EQ(count_not_finite(info.type, block), 0u) << info.name;
            block[static_cast<size_t>(at) + 1] = std::byte{0x7C};
            EXPECT_EQ(count_not_finite(info.type, block), 1u) << info.name;
        }
}

TEST(finite_weights, counts_exponents_that_single_numbers_do_not_have) {
    auto block = zeros(WeightType::mxfp4);
    for (const auto& [exponent, count] : {std::pair{0, 0u}, {252, 0u}, {253, 1u}, {255, 1u}}) {
        block[0] = static_cast<std::byte>(exponent);
        EXPECT_EQ(count_not_finite(WeightType::mxfp4, block), count) << exponent;
    }
}

// Random bytes of any type: what passes has only finite numbers.
TEST(finite_weights, lets_nothing_pass_that_is_not_a_number) {
    uint64_t state = 1;
    for (const kernels::TypeInfo& info : kernels::kTypes) {
        size_t passed = 0;
        for (int round = 0; round < 2000; ++round) {
            std::vector<std::byte> block(info.block_bytes);
            for (std::byte& b : block) b = static_cast<std::byte>(mix64(state++) & 255);
            std::vector<float> values(info.block_elements);
            kernels::dequantize_row(info.type, block.data(), values.size(), values.data());
            const bool finite = count_not_finite(info.type, block) == 0;
            passed += finite ? 1 : 0;
            for (const float value : values) ASSERT_TRUE(!finite || std::isfinite(value)) << info.name;
        }
        EXPECT_GT(passed, 1500u) << info.name;
    }
}

}  // namespace cadans::model
