// Products of packed F32, F16 and BF16 weights with f32 activations: acc = fma(w, x, acc), inputs ascending.
//
// Main idea: a chain of fma per output cannot be split without changing bits, so speed comes from many outputs at once.
#pragma once

#include "kernels/generic/tile.h"

namespace cadans::kernels {

template <class V, WeightType kType>
[[gnu::always_inline]] inline typename V::F load_weights(const std::byte* at) {
    if constexpr (kType == WeightType::f32) return V::load(reinterpret_cast<const float*>(at));
    if constexpr (kType == WeightType::f16) return V::load_f16(at);
    if constexpr (kType == WeightType::bf16) return V::load_bf16(at);
}

template <class V, WeightType kType, size_t kPanels, size_t kRows>
void float_tile(const std::byte* panel, size_t stride, size_t cols, const std::byte* x, size_t x_stride, float* out,
                size_t out_stride, size_t live_rows) {
    using F = typename V::F;
    constexpr size_t kBytes = kType == WeightType::f32 ? 64 : 32;
    F acc[kPanels][kRows];
    const float* rows[kRows];
    unroll<kRows>([&](auto n) __attribute__((always_inline)) {
        rows[n.value] = reinterpret_cast<const float*>(x + n.value * x_stride);
        unroll<kPanels>([&](auto p) __attribute__((always_inline)) { acc[p.value][n.value] = V::set1(0.0f); });
    });
    for (size_t k = 0; k < cols; ++k) {
        F w[kPanels];
        unroll<kPanels>([&](auto p) __attribute__((always_inline)) {
            w[p.value] = load_weights<V, kType>(panel + p.value * stride + k * kBytes);
        });
        unroll<kRows>([&](auto n) __attribute__((always_inline)) {
            const F a = V::set1(rows[n.value][k]);
            unroll<kPanels>([&](auto p) __attribute__((always_inline)) {
                acc[p.value][n.value] = V::fma(w[p.value], a, acc[p.value][n.value]);
            });
        });
    }
    unroll<kPanels>([&](auto p) __attribute__((always_inline)) {
        unroll<kRows>([&](auto n) __attribute__((always_inline)) {
            const size_t live = p.value + 1 < kPanels ? 16 : live_rows - 16 * (kPanels - 1);
            store_rows<V>(out + n.value * out_stride + 16 * p.value, acc[p.value][n.value], live);
        });
    });
}

template <class V, WeightType kType, size_t kPanels>
void float_panels(const std::byte* panel, size_t stride, size_t cols, const InputRows& x, float* out, size_t out_stride,
                  size_t live_rows) {
    for (size_t n = 0; n < x.n; n += V::kFloatRows) {
        const size_t left = x.n - n < V::kFloatRows ? x.n - n : V::kFloatRows;
        with_count<V::kFloatRows>(
            left, [&](auto rows) __attribute__((always_inline)) {
                float_tile<V, kType, kPanels, rows.value>(panel, stride, cols, x.data + n * x.stride_bytes,
                                                          x.stride_bytes, out + n * out_stride, out_stride, live_rows);
            });
    }
}

/// The whole range of panels; see KernelTable::matmul.
template <class V, WeightType kType>
void float_matmul(const PackedMatrix& w, size_t panel_begin, size_t panel_end, const InputRows& x, float* out,
                  size_t out_stride) {
    const size_t stride = panel_bytes(kType, w.cols);
    for (size_t p = panel_begin; p < panel_end;) {
        const std::byte* panel = w.data + p * stride;
        const size_t live = w.rows - 16 * p;
        const auto bounded = [&](size_t panels) { return live < 16 * panels ? live : 16 * panels; };
        if (x.n == 1 && p + V::kFloatGemvPanels <= panel_end) {
            constexpr size_t kPanels = V::kFloatGemvPanels;
            float_tile<V, kType, kPanels, 1>(panel, stride, w.cols, x.data, x.stride_bytes, out + 16 * p, out_stride,
                                             bounded(kPanels));
            p += kPanels;
        } else if (p + V::kFloatPanels <= panel_end) {
            constexpr size_t kPanels = V::kFloatPanels;
            float_panels<V, kType, kPanels>(panel, stride, w.cols, x, out + 16 * p, out_stride, bounded(kPanels));
            p += kPanels;
        } else {
            float_panels<V, kType, 1>(panel, stride, w.cols, x, out + 16 * p, out_stride, bounded(1));
            ++p;
        }
    }
}

}  // namespace cadans::kernels
