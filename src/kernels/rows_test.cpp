// Kernels over a row: close to libm, and the same bits for every table, size and alignment.
#include <gtest/gtest.h>

#include <functional>

#include "kernels/reference/reference.h"
#include "kernels/testing/emulated512.h"

namespace cadans::kernels {

namespace {

const std::vector<size_t> kSizes = {1, 2, 15, 16, 17, 31, 32, 33, 48, 63};

/// Runs `op` on every table with input and output off any vector boundary; expects one result and returns it.
std::vector<float> one_result(size_t n, const std::function<void(const KernelTable&, float*)>& op) {
    std::vector<float> first;
    for (const KernelTable* table : test::all_tables()) {
        std::vector<float> out(n + 4, -7.0f);
        op(*table, out.data() + 1);
        if (first.empty()) first = out;
        EXPECT_TRUE(test::same_bits(first, out)) << table->name << " n " << n;
        EXPECT_EQ(out[0], -7.0f);
        EXPECT_EQ(out[n + 1], -7.0f);
    }
    return {first.begin() + 1, first.begin() + 1 + static_cast<long>(n)};
}

}  // namespace

TEST(rows, activations_agree_with_libm) {
    test::Numbers numbers(20);
    for (const size_t n : kSizes) {
        const auto x = numbers.floats(n + 1, 12.0f), y = numbers.floats(n + 1, 2.0f);
        const float *a = x.data() + 1, *b = y.data() + 1;
        const auto add = one_result(n, [&](const KernelTable& t, float* out) { t.add(a, b, n, out); });
        const auto scaled = one_result(n, [&](const KernelTable& t, float* out) { t.scale(a, 3.0f, n, out); });
        const auto silu = one_result(n, [&](const KernelTable& t, float* out) { t.silu_mul(a, b, n, out); });
        const auto gelu = one_result(n, [&](const KernelTable& t, float* out) { t.gelu_mul(a, b, n, out); });
        const auto cap = one_result(n, [&](const KernelTable& t, float* out) { t.softcap(a, 5.0f, n, out); });
        const auto exp = one_result(n, [&](const KernelTable& t, float* out) { t.exp_shifted(a, n, 1.5f, out); });
        for (size_t i = 0; i < n; ++i) {
            const double g = a[i], u = b[i];
            EXPECT_EQ(add[i], a[i] + b[i]);
            EXPECT_EQ(scaled[i], a[i] * 3.0f);
            EXPECT_NEAR(silu[i], reference::silu(g) * u, 4e-6);
            EXPECT_NEAR(gelu[i], reference::gelu(g) * u, 4e-6);
            EXPECT_NEAR(cap[i], 5.0 * std::tanh(g / 5.0), 1e-6);
            EXPECT_NEAR(exp[i] / std::exp(g - 1.5), 1.0, 1e-6);
        }
    }
}

TEST(rows, exp_is_exact_where_softmax_needs_it) {
    const float inf = INFINITY;
    const std::vector<float> x = {0.0f, -0.0f, -inf, -104.5f, 90.0f, inf, -87.5f, 88.0f};
    const auto y =
        one_result(x.size(), [&](const KernelTable& t, float* out) { t.exp_shifted(x.data(), x.size(), 0.0f, out); });
    EXPECT_EQ(y[0], 1.0f);
    EXPECT_EQ(y[1], 1.0f);
    EXPECT_EQ(y[2], 0.0f);
    EXPECT_EQ(y[3], 0.0f);
    EXPECT_EQ(y[4], inf);
    EXPECT_EQ(y[5], inf);
    EXPECT_NEAR(y[6] / std::exp(-87.5), 1.0, 1e-6);
    EXPECT_NEAR(y[7] / std::exp(88.0), 1.0, 1e-5);
    for (const KernelTable* table : test::all_tables()) {  // which NaN it is may differ
        const float nan = NAN;
        float out = 0.0f;
        table->exp_shifted(&nan, 1, 0.0f, &out);
        EXPECT_TRUE(std::isnan(out)) << table->name;
    }
    std::vector<float> many;
    for (float v = -104.0f; v < 88.7f; v += 0.00917f) many.push_back(v);
    const auto all = one_result(
        many.size(), [&](const KernelTable& t, float* out) { t.exp_shifted(many.data(), many.size(), 0.0f, out); });
    for (size_t i = 0; i < many.size(); ++i) {
        const double expected = std::exp(static_cast<double>(many[i]));
        EXPECT_NEAR(all[i], expected, 3e-7 * expected + 0x1p-149) << many[i];
    }
}

TEST(rows, tanh_is_odd_and_bounded) {
    std::vector<float> x;
    for (float v = 0.0f; v < 12.0f; v += 0.0013f) x.push_back(v), x.push_back(-v);
    const auto y =
        one_result(x.size(), [&](const KernelTable& t, float* out) { t.softcap(x.data(), 1.0f, x.size(), out); });
    for (size_t i = 0; i < x.size(); i += 2) {
        EXPECT_EQ(y[i], -y[i + 1]);
        EXPECT_LE(y[i], 1.0f);
        const double expected = std::tanh(static_cast<double>(x[i]));
        EXPECT_NEAR(y[i], expected, 3e-7 * expected) << x[i];
    }
}

TEST(rows, norm_agrees_with_the_reference) {
    test::Numbers numbers(21);
    for (const size_t n : kSizes) {
        const auto x = numbers.floats(n, 3.0f), w = numbers.floats(n);
        const auto with =
            one_result(n, [&](const KernelTable& t, float* out) { t.rms_norm(x.data(), w.data(), n, 1e-5f, out); });
        const auto without =
            one_result(n, [&](const KernelTable& t, float* out) { t.rms_norm(x.data(), nullptr, n, 1e-5f, out); });
        const auto expected = reference::rms_norm(x, w, 1e-5), plain = reference::rms_norm(x, {}, 1e-5);
        for (size_t i = 0; i < n; ++i) {
            EXPECT_NEAR(with[i], expected[i], 1e-6);
            EXPECT_NEAR(without[i], plain[i], 1e-6);
        }
    }
}

TEST(rows, quantises_to_the_nearest_code) {
    test::Numbers numbers(22);
    const size_t n = 256;
    auto x = numbers.floats(n + 1, 5.0f);
    for (size_t i = 0; i < 32; ++i) x[1 + i] = 0.0f;                          // a group of zeros
    for (size_t i = 32; i < 64; ++i) x[1 + i] = 1e-39f;                       // a group of subnormals
    for (size_t i = 64; i < 96; ++i) x[1 + i] = i % 2 == 0 ? -127.0f : 2.5f;  // a tie
    const float* a = x.data() + 1;
    const auto weight = numbers.floats(n);
    std::vector<ActivationGroup> first;
    for (const KernelTable* table : test::all_tables()) {
        std::vector<ActivationGroup> q(n / kGroup);
        table->quantize_row(a, n, q.data());
        if (first.empty()) first = q;
        EXPECT_EQ(std::memcmp(q.data(), first.data(), activation_bytes(n)), 0) << table->name;
        std::vector<float> normed(n);
        std::vector<ActivationGroup> two_steps(n / kGroup), fused(n / kGroup);
        table->rms_norm(a, weight.data(), n, 1e-6f, normed.data());
        table->quantize_row(normed.data(), n, two_steps.data());
        table->rms_norm_quantize(a, weight.data(), n, 1e-6f, fused.data());
        EXPECT_EQ(std::memcmp(two_steps.data(), fused.data(), activation_bytes(n)), 0) << table->name;
    }
    for (size_t g = 0; g < n / kGroup; ++g) {
        int sum = 0, pairs[2] = {}, high[2] = {};
        for (size_t i = 0; i < kGroup; ++i) {
            const int code = first[g].codes[i];
            EXPECT_LE(std::abs(code), 127);
            EXPECT_NEAR(first[g].scale * static_cast<float>(code), a[g * kGroup + i],
                        first[g].scale * 0.5001f + 1e-38f);
            sum += code;
            pairs[i / 2 % 2] += code;
            if (i >= 16) high[i / 2 % 2] += code;
        }
        for (size_t i = 0; i < 2; ++i) {
            EXPECT_EQ(first[g].neg_pairs[i], -pairs[i]);
            EXPECT_EQ(first[g].neg_pairs_hi[i], -high[i]);
        }
        EXPECT_EQ(first[g].scaled_sum, first[g].scale * static_cast<float>(sum));
    }
    EXPECT_EQ(first[0].scale, 0.0f);
    EXPECT_EQ(first[1].scale, 0.0f);
    EXPECT_EQ(first[2].codes[1], 2);
    EXPECT_EQ(first[2].codes[0], -127);
}

TEST(rows, rope_turns_pairs_and_halves) {
    test::Numbers numbers(23);
    for (const size_t n_rot : {2u, 16u, 34u, 64u, 128u})
        for (const RopeStyle style : {RopeStyle::norm, RopeStyle::neox}) {
            const size_t heads = 3, head = n_rot + 6, half = n_rot / 2;
            const auto x = numbers.floats(heads * head);
            std::vector<float> cos, sin;
            std::vector<double> angles;
            for (size_t i = 0; i < half; ++i) {
                angles.push_back(static_cast<double>(i) * 0.37);
                cos.push_back(static_cast<float>(std::cos(angles[i])));
                sin.push_back(static_cast<float>(std::sin(angles[i])));
            }
            auto expected = x;
            for (size_t h = 0; h < heads; ++h)
                for (size_t i = 0; i < half; ++i) {
                    float* at = &expected[h * head];
                    if (style == RopeStyle::norm)
                        reference::rotate(at[2 * i], at[2 * i + 1], angles[i]);
                    else
                        reference::rotate(at[i], at[i + half], angles[i]);
                }
            const auto got = one_result(x.size(), [&](const KernelTable& t, float* out) {
                std::copy(x.begin(), x.end(), out);
                t.rope(out, heads, head, n_rot, cos.data(), sin.data(), style);
            });
            for (size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(got[i], expected[i], 3e-7) << n_rot << " at " << i;
        }
}

TEST(rows, halves_round_alike_in_every_table) {
    std::vector<uint16_t> halves(0x10000);
    for (size_t i = 0; i < halves.size(); ++i) halves[i] = static_cast<uint16_t>(i);
    test::Numbers numbers(24);
    std::vector<float> x;
    for (size_t i = 0; i < 200000; ++i) {
        const auto bits = static_cast<uint32_t>(numbers.bits());
        float value;
        std::memcpy(&value, &bits, 4);
        if (!std::isnan(value)) x.push_back(value);
        x.push_back(std::ldexp(numbers.signed_unit(), static_cast<int>(numbers.below(44)) - 28));
    }
    for (const KernelTable* table : test::all_tables()) {
        std::vector<float> wide(halves.size());
        table->from_f16(halves.data(), halves.size(), wide.data());
        for (size_t i = 0; i < halves.size(); ++i) {
            const float expected = f16_to_f32(halves[i]);
            ASSERT_EQ(std::memcmp(&wide[i], &expected, 4), 0) << table->name << " " << i;
        }
        std::vector<uint16_t> narrow(x.size());
        table->to_f16(x.data(), x.size(), narrow.data());
        for (size_t i = 0; i < x.size(); ++i) ASSERT_EQ(narrow[i], f32_to_f16(x[i])) << table->name << " " << x[i];
    }
}

TEST(rows, reductions_have_one_order) {
    test::Numbers numbers(25);
    for (const size_t n : {1u, 5u, 16u, 31u, 1000u}) {
        const auto x = numbers.floats(n, 9.0f);
        const float largest = *std::max_element(x.begin(), x.end());
        double expected = 0.0;
        for (const float v : x) expected += std::exp(static_cast<double>(v) - static_cast<double>(largest));
        const auto sums = one_result(1, [&](const KernelTable& t, float* out) {
            EXPECT_EQ(t.max(x.data(), n), largest);
            *out = t.sum_exp(x.data(), n, largest);
        });
        EXPECT_NEAR(sums[0] / expected, 1.0, 1e-6);
    }
}

}  // namespace cadans::kernels
