#include "kernels/types.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <vector>

namespace cadans::kernels {

TEST(types, table_is_in_the_order_of_the_enum) {
    for (size_t i = 0; i < kTypeCount; ++i) EXPECT_EQ(static_cast<size_t>(kTypes[i].type), i);
}

TEST(types, knows_its_own_ids_and_no_others) {
    for (const TypeInfo& info : kTypes) EXPECT_EQ(type_from_gguf(info.gguf_id), info.type);
    for (const uint32_t id : {4u, 5u, 9u, 15u, 99u}) EXPECT_FALSE(type_from_gguf(id).has_value());
}

// The golden file holds blocks and the values that another implementation gives them: golden/make_golden.py.
TEST(types, dequantises_bit_for_bit_like_the_gguf_package) {
    std::ifstream in(KERNELS_GOLDEN, std::ios::binary);
    ASSERT_TRUE(in) << KERNELS_GOLDEN;
    size_t types = 0;
    uint32_t head[3];
    while (in.read(reinterpret_cast<char*>(head), sizeof head)) {
        const auto type = type_from_gguf(head[0]);
        ASSERT_TRUE(type.has_value()) << head[0];
        std::vector<std::byte> bytes(head[2]);
        std::vector<float> expected(head[1]), got(head[1]);
        in.read(reinterpret_cast<char*>(bytes.data()), head[2]);
        in.read(reinterpret_cast<char*>(expected.data()), static_cast<std::streamsize>(head[1] * sizeof(float)));
        ASSERT_TRUE(in);
        dequantize_row(*type, bytes.data(), got.size(), got.data());
        for (size_t i = 0; i < got.size(); ++i) {
            uint32_t a = 0, b = 0;
            std::memcpy(&a, &got[i], 4);
            std::memcpy(&b, &expected[i], 4);
            ASSERT_EQ(a, b) << type_info(*type).name << " element " << i << ": " << got[i] << ", not " << expected[i];
        }
        ++types;
    }
    EXPECT_EQ(types, static_cast<size_t>(std::ranges::count_if(kTypes, &TypeInfo::quantised)));
}

TEST(types, halves_survive_the_way_to_single_and_back) {
    for (uint32_t half = 0; half < 0x10000; ++half) {
        const float value = f16_to_f32(static_cast<uint16_t>(half));
        if (std::isnan(value))
            EXPECT_TRUE(std::isnan(f16_to_f32(f32_to_f16(value))));
        else
            EXPECT_EQ(f32_to_f16(value), half);
    }
    EXPECT_EQ(f16_to_f32(0x0001), 0x1p-24f);
    EXPECT_EQ(f16_to_f32(0x7BFF), 65504.0f);
    EXPECT_EQ(f32_to_f16(65519.9f), 0x7BFF);
    EXPECT_EQ(f32_to_f16(65520.0f), 0x7C00);
    EXPECT_EQ(f32_to_f16(0x1p-25f), 0x0000);  // a tie goes to even
    EXPECT_EQ(f32_to_f16(0x1.000002p-25f), 0x0001);
}

}  // namespace cadans::kernels
