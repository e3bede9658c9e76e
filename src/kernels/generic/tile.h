// One register tile of a product: panels of weights times input rows, group after group.
//
// Main idea: a tile depends on few properties of a format, so formats that agree in them share its code.
#pragma once

#include "kernels/generic/codes.h"
#include "kernels/generic/unroll.h"

namespace cadans::kernels {

/// What the arithmetic of a group depends on.
///
/// bits        width of a code, as far as the vector type's dot asks (V::dot_bits)
/// min         a minimum per group
/// half_group  scales belong to 16 elements
/// zero        codes have a zero point, which the integer sums start from
template <int bits, bool min, bool half_group, bool zero>
struct TileShape {
    static constexpr int kBits = bits;
    static constexpr bool kMin = min, kHalfGroup = half_group, kZero = zero;
};

/// Where the dot takes 8-bit codes as signed numbers there is no zero point left.
template <class V, class Form>
using ShapeOf = TileShape<V::dot_bits(Form::kWidth), Form::kMin, Form::kHalfGroup,
                          (Form::kZeroShift >= 0) && !(Form::kWidth == 8 && V::kSignedBytes)>;

/// The zero point as V::dot takes it.
template <class V>
[[gnu::always_inline]] inline typename V::I zero_pairs(int zero_shift) {
    return V::iset1(zero_shift < 0 ? 0 : (1 << zero_shift) * 0x00010001);
}

/// The scale of an input row times the sum of its codes, over the second or the first half of a group.
template <class V>
[[gnu::always_inline]] inline typename V::F scaled_half_sum(const ActivationGroup& x, bool second) {
    const int high = x.neg_pairs_hi[0] + x.neg_pairs_hi[1];
    const int sum = second ? -high : high - (x.neg_pairs[0] + x.neg_pairs[1]);
    return V::set1(x.scale * static_cast<float>(sum));
}

/// One group of kPanels x 16 weight rows times kRows input rows, folded into acc.
template <class V, class Shape, size_t kPanels, size_t kRows, class Source>
[[gnu::always_inline]] inline void fold_group(const Source (&codes)[kPanels], const float* const (&scale)[kPanels],
                                              const float* const (&min)[kPanels],
                                              const ActivationGroup* const (&x)[kRows], typename V::I zero,
                                              typename V::F (&acc)[kPanels][kRows]) {
    using I = typename V::I;
    using F = typename V::F;
    const int8_t* a[kRows];
    const int8_t* a_hi[kRows];
    I sum[kPanels][kRows];
    unroll<kRows>([&](auto n) __attribute__((always_inline)) {
        a[n.value] = x[n.value]->codes;
        a_hi[n.value] = x[n.value]->codes + 16;
    });
    const auto pairs_of = [](const int16_t* two) __attribute__((always_inline)) {
        int32_t word;
        __builtin_memcpy(&word, two, sizeof word);
        return V::iset1(word);
    };
    const auto pairs = [&](size_t n) __attribute__((always_inline)) { return pairs_of(x[n]->neg_pairs); };
    const auto pairs_hi = [&](size_t n) __attribute__((always_inline)) { return pairs_of(x[n]->neg_pairs_hi); };
    const auto pairs_lo = [&](size_t n) __attribute__((always_inline)) { return V::isub_pairs(pairs(n), pairs_hi(n)); };
    const auto fold = [&](size_t offset) __attribute__((always_inline)) {
        unroll<kRows>([&](auto n) __attribute__((always_inline)) {
            const F a_scale = V::set1(x[n.value]->scale);
            unroll<kPanels>([&](auto p) __attribute__((always_inline)) {
                F& to = acc[p.value][n.value];
                to = V::fma(V::to_float(sum[p.value][n.value]), V::mul(V::load(scale[p.value] + offset), a_scale), to);
                if constexpr (Shape::kMin && Shape::kHalfGroup)
                    to = V::fma(V::load(min[p.value] + offset), scaled_half_sum<V>(*x[n.value], offset != 0), to);
                else if constexpr (Shape::kMin)
                    to = V::fma(V::load(min[p.value]), V::set1(x[n.value]->scaled_sum), to);
            });
        });
    };
    if constexpr (Shape::kHalfGroup) {
        using Second = FromChunk<V, Source, 4>;
        V::template dot<Shape, 4, kPanels, kRows>(codes, a, pairs_lo, zero, sum);
        fold(0);
        if constexpr (kPanels == 1) {
            const Second second[1] = {{codes[0]}};
            V::template dot<Shape, 4, kPanels, kRows>(second, a_hi, pairs_hi, zero, sum);
        } else {
            const Second second[2] = {{codes[0]}, {codes[1]}};
            V::template dot<Shape, 4, kPanels, kRows>(second, a_hi, pairs_hi, zero, sum);
        }
        fold(16);
    } else {
        V::template dot<Shape, 8, kPanels, kRows>(codes, a, pairs, zero, sum);
        fold(0);
    }
}

/// Writes 16 lanes, or the first `rows` of them, to one output row.
template <class V>
[[gnu::always_inline]] inline void store_rows(float* out, typename V::F value, size_t rows) {
    if (rows >= 16) {
        V::store(out, value);
    } else {
        alignas(64) float lanes[16];
        V::store(lanes, value);
        for (size_t r = 0; r < rows; ++r) out[r] = lanes[r];
    }
}

template <class V>
[[gnu::always_inline]] inline typename V::F load_rows(const float* in, size_t rows) {
    if (rows >= 16) return V::load(in);
    alignas(64) float lanes[16] = {};
    for (size_t r = 0; r < rows; ++r) lanes[r] = in[r];
    return V::load(lanes);
}

/// Where the rows of a product are read and written: row n at x + n * x_stride and out + n * out_stride.
template <class V>
struct TileRows {
    const std::byte* x;
    size_t x_stride;
    float* out;
    size_t out_stride;
    size_t live_rows;  ///< columns of out that exist

    /// The part that starts at input row n and at this column of out.
    [[gnu::always_inline]] TileRows from(size_t n, size_t column, size_t columns) const {
        const size_t live = live_rows - column;
        return {x + n * x_stride, x_stride, out + n * out_stride + column, out_stride, live < columns ? live : columns};
    }
};

/// Up to 256 inputs of one panel as bytes and f32 scales.
struct Expanded {
    alignas(64) std::byte codes[kExpandGroups][512];
    GroupScales scales;
};

/// Groups first .. first + count of kPanels expanded panels times kRows input rows; out carries acc between calls.
template <class V, class Shape, size_t kPanels, size_t kRows>
void tile(const Expanded* weights, size_t first, size_t count, int zero_shift, const TileRows<V>& at) {
    constexpr size_t kPerGroup = Shape::kHalfGroup ? 2 : 1;
    const auto live = [&](size_t p) __attribute__((always_inline)) {
        return p + 1 < kPanels ? size_t{16} : at.live_rows - 16 * (kPanels - 1);
    };
    typename V::F acc[kPanels][kRows];
    unroll<kPanels>([&](auto p) __attribute__((always_inline)) {
        unroll<kRows>([&](auto n) __attribute__((always_inline)) {
            acc[p.value][n.value] = first == 0
                                        ? V::set1(0.0f)
                                        : load_rows<V>(at.out + n.value * at.out_stride + 16 * p.value, live(p.value));
        });
    });
    const ActivationGroup* rows[kRows];
    unroll<kRows>([&](auto n) __attribute__((always_inline)) {
        rows[n.value] = reinterpret_cast<const ActivationGroup*>(at.x + n.value * at.x_stride) + first;
    });
    const typename V::I zero = zero_pairs<V>(zero_shift);
    for (size_t g = 0; g < count; ++g) {
        ExpandedCodes<V> codes[kPanels];
        const float* scale[kPanels];
        const float* min[kPanels];
        unroll<kPanels>([&](auto p) __attribute__((always_inline)) {
            codes[p.value].bytes = weights[p.value].codes[g];
            scale[p.value] = weights[p.value].scales.scale[g * kPerGroup];
            min[p.value] = weights[p.value].scales.min[g * kPerGroup];
        });
        fold_group<V, Shape, kPanels, kRows>(codes, scale, min, rows, zero, acc);
        unroll<kRows>([&](auto n) __attribute__((always_inline)) { ++rows[n.value]; });
    }
    unroll<kPanels>([&](auto p) __attribute__((always_inline)) {
        unroll<kRows>([&](auto n) __attribute__((always_inline)) {
            store_rows<V>(at.out + n.value * at.out_stride + 16 * p.value, acc[p.value][n.value], live(p.value));
        });
    });
}

}  // namespace cadans::kernels
