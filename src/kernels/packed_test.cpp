#include "kernels/packed.h"

#include <gtest/gtest.h>

#include "kernels/reference/test_data.h"

namespace cadans::kernels {

TEST(packed, loses_no_bit_of_any_type) {
    test::Numbers numbers(1);
    for (const TypeInfo& info : kTypes)
        for (const size_t n_rows : {1u, 7u, 16u}) {
            const size_t cols = info.block_elements == 256 ? 512 : 96;
            const size_t stride = row_bytes(info.type, cols);
            std::vector<std::byte> file(n_rows * stride);
            for (std::byte& b : file) b = static_cast<std::byte>(numbers.bits() & 255);
            test::Aligned panel(panel_bytes(info.type, cols));
            pack_panel(info.type, file.data(), stride, n_rows, cols, panel.data());
            std::vector<std::byte> back(file.size());
            unpack_panel(info.type, panel.data(), n_rows, cols, back.data(), stride);
            EXPECT_EQ(file, back) << info.name << " " << n_rows;
        }
}

TEST(packed, takes_the_size_of_the_file) {
    for (const TypeInfo& info : kTypes) {
        EXPECT_EQ(packed_bytes(info.type, 48, 512), 48 * row_bytes(info.type, 512)) << info.name;
        EXPECT_EQ(packed_bytes(info.type, 33, 512), 48 * row_bytes(info.type, 512)) << info.name;
        EXPECT_EQ(panel_bytes(info.type, 288 / 32 * 256) % kPanelAlignment, 0u);
    }
}

TEST(packed, gives_back_the_values_of_a_row) {
    test::Numbers numbers(2);
    for (const TypeInfo& info : kTypes) {
        const auto file = test::random_weights(info.type, 37, 256, numbers);
        const test::Packed packed(info.type, file, 37, 256);
        for (const size_t row : {0u, 15u, 16u, 36u}) {
            std::vector<float> direct(256), through(256);
            dequantize_row(info.type, file.data() + row * row_bytes(info.type, 256), 256, direct.data());
            dequantize_packed_row(packed.matrix, row, through.data());
            EXPECT_TRUE(test::same_bits(direct, through)) << info.name << " row " << row;
        }
    }
}

}  // namespace cadans::kernels
