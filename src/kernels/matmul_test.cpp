// Products: close to the reference, and the same bits for every table, row count, panel range and alignment.
#include <gtest/gtest.h>

#include "kernels/reference/reference.h"
#include "kernels/testing/emulated512.h"

namespace cadans::kernels {

namespace {

/// Input rows in the form that a weight type takes, at an address that is only 4-byte aligned.
struct Inputs {
    Inputs(WeightType type, const std::vector<float>& x, size_t n, size_t cols)
        : stride(type_info(type).quantised ? activation_bytes(cols) : cols * 4), bytes(stride * n + 4) {
        for (size_t r = 0; r < n; ++r) {
            std::byte* to = bytes.data() + 4 + r * stride;
            if (type_info(type).quantised)
                kernel_table(Isa::scalar).quantize_row(&x[r * cols], cols, reinterpret_cast<ActivationGroup*>(to));
            else
                std::memcpy(to, &x[r * cols], cols * 4);
        }
    }
    InputRows rows(size_t n) { return {bytes.data() + 4, stride, n}; }
    size_t stride;
    test::Aligned bytes;
};

constexpr size_t kStray = 3;  // output rows start off any vector boundary

std::vector<float> product(const KernelTable& table, const PackedMatrix& w, InputRows x) {
    const size_t stride = w.rows + 5;
    std::vector<float> out(x.n * stride + kStray, -7.0f);
    table.matmul(w, 0, w.panels(), x, out.data() + kStray, stride);
    return out;
}

}  // namespace

TEST(matmul, agrees_with_the_reference) {
    test::Numbers numbers(3);
    for (const TypeInfo& info : kTypes) {
        const size_t rows = 35, cols = 512, n = 3;
        const auto file = test::random_weights(info.type, rows, cols, numbers);
        const test::Packed w(info.type, file, rows, cols);
        const auto x = numbers.floats(n * cols);
        Inputs inputs(info.type, x, n, cols);
        for (const KernelTable* table : test::all_tables()) {
            const auto y = product(*table, w.matrix, inputs.rows(n));
            double error = 0.0, size = 0.0;
            for (size_t r = 0; r < n; ++r) {
                const std::vector<double> row(x.begin() + static_cast<long>(r * cols),
                                              x.begin() + static_cast<long>((r + 1) * cols));
                const auto expected = reference::matmul(info.type, file, rows, cols, row);
                for (size_t i = 0; i < rows; ++i) {
                    const double d = static_cast<double>(y[kStray + r * (rows + 5) + i]) - expected[i];
                    error += d * d;
                    size += expected[i] * expected[i];
                }
            }
            EXPECT_LT(error / size, info.quantised ? 1e-4 : 1e-12) << info.name << " " << table->name;
        }
    }
}

TEST(matmul, gives_the_same_bits_for_every_table_and_row_count) {
    test::Numbers numbers(4);
    const size_t most = 40;
    for (const TypeInfo& info : kTypes)
        for (const size_t rows : {16u, 41u}) {
            const size_t cols = info.block_elements == 256 ? 768 : info.quantised ? 352 : 67;
            const auto file = test::random_weights(info.type, rows, cols, numbers);
            const test::Packed w(info.type, file, rows, cols);
            const auto x = numbers.floats(most * cols, 3.0f);
            Inputs inputs(info.type, x, most, cols);
            const size_t stride = rows + 5;
            std::vector<float> one_by_one(most * stride + kStray, -7.0f);
            for (size_t r = 0; r < most; ++r) {
                InputRows row = inputs.rows(1);
                row.data += r * row.stride_bytes;
                kernel_table(Isa::scalar)
                    .matmul(w.matrix, 0, w.matrix.panels(), row, one_by_one.data() + kStray + r * stride, stride);
            }
            for (const KernelTable* table : test::all_tables())
                for (size_t n = 1; n <= most; ++n) {
                    std::vector<float> expected(one_by_one.begin(),
                                                one_by_one.begin() + static_cast<long>(n * stride + kStray));
                    ASSERT_TRUE(test::same_bits(product(*table, w.matrix, inputs.rows(n)), expected))
                        << info.name << " " << table->name << " rows " << rows << " n " << n;
                }
        }
}

TEST(matmul, writes_only_the_panels_it_was_given) {
    test::Numbers numbers(5);
    const size_t rows = 70, cols = 256;
    for (const TypeInfo& info : kTypes) {
        const auto file = test::random_weights(info.type, rows, cols, numbers);
        const test::Packed w(info.type, file, rows, cols);
        Inputs inputs(info.type, numbers.floats(8 * cols), 8, cols);
        for (const KernelTable* table : test::all_tables())
            for (const size_t n : {1u, 8u}) {
                std::vector<float> whole(n * rows, -7.0f), parts(n * rows, -7.0f), nothing(n * rows, -7.0f);
                table->matmul(w.matrix, 0, 5, inputs.rows(n), whole.data(), rows);
                table->matmul(w.matrix, 1, 2, inputs.rows(n), parts.data(), rows);
                EXPECT_EQ(parts[15], -7.0f);
                EXPECT_EQ(parts[32], -7.0f);
                table->matmul(w.matrix, 0, 1, inputs.rows(n), parts.data(), rows);
                table->matmul(w.matrix, 2, 5, inputs.rows(n), parts.data(), rows);
                EXPECT_TRUE(test::same_bits(whole, parts)) << info.name << " " << table->name;
                table->matmul(w.matrix, 3, 3, inputs.rows(n), nothing.data(), rows);
                EXPECT_TRUE(test::same_bits(nothing, std::vector<float>(n * rows, -7.0f)));
            }
    }
}

// Scales from subnormal to beyond f32, where products become infinite: still the same bits.
TEST(matmul, reads_every_exponent) {
    test::Numbers numbers(6);
    const size_t rows = 256, cols = 32;
    auto file = test::random_weights(WeightType::mxfp4, rows, cols, numbers);
    const size_t block = row_bytes(WeightType::mxfp4, cols);
    for (size_t e = 0; e < rows; ++e) file[e * block] = static_cast<std::byte>(e);
    const test::Packed w(WeightType::mxfp4, file, rows, cols);
    Inputs inputs(WeightType::mxfp4, numbers.floats(8 * cols), 8, cols);
    for (const size_t n : {1u, 8u}) {
        const auto expected = product(kernel_table(Isa::scalar), w.matrix, inputs.rows(n));
        for (const KernelTable* table : test::all_tables())
            EXPECT_TRUE(test::same_bits(product(*table, w.matrix, inputs.rows(n)), expected))
                << table->name << " " << n;
    }
}

// All codes at one end, -128 and its like included, against activations of +-127: the largest sums there can be.
TEST(matmul, is_exact_at_the_extremes) {
    const size_t rows = 16, cols = 256;
    for (const TypeInfo& info : kTypes) {
        if (!info.quantised) continue;
        for (const unsigned fill : {0x00u, 0xFFu, 0x80u, 0x7Fu, 0x0Fu, 0xF0u})
            for (const float sign : {1.0f, -1.0f}) {
                std::vector<std::byte> file(rows * row_bytes(info.type, cols), static_cast<std::byte>(fill));
                for (size_t at = 0; at < file.size(); at += info.block_bytes) {
                    if (info.scale_at >= 0) test::put_f16(&file[at + static_cast<size_t>(info.scale_at)], 1.0f);
                    if (info.min_at >= 0) test::put_f16(&file[at + static_cast<size_t>(info.min_at)], 1.0f);
                    if (info.type == WeightType::mxfp4) file[at] = std::byte{128};
                }
                const test::Packed w(info.type, file, rows, cols);
                std::vector<float> x(8 * cols);
                for (size_t i = 0; i < x.size(); ++i) x[i] = i % 7 == 3 && sign < 0 ? -127.0f : sign * 127.0f;
                Inputs inputs(info.type, x, 8, cols);
                std::vector<float> weights(cols);
                dequantize_row(info.type, file.data(), cols, weights.data());
                for (const KernelTable* table : test::all_tables())
                    for (const size_t n : {1u, 8u}) {
                        const auto y = product(*table, w.matrix, inputs.rows(n));
                        double expected = 0.0;
                        for (size_t k = 0; k < cols; ++k)
                            expected += static_cast<double>(weights[k]) * static_cast<double>(x[k]);
                        EXPECT_NEAR(y[kStray], expected, 1e-6 * std::fabs(expected) + 1e-3)
                            << info.name << " " << table->name << " fill " << fill << " n " << n;
                    }
            }
    }
}

}  // namespace cadans::kernels
