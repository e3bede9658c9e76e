// Kernels over one row of f32: norm, quantisation, activations, rotation, reductions; whatever the vector type.
//
// Main idea: reductions run in 16 fixed lanes and end in a fixed tree; a tail shorter than 16 goes through a padded
// copy.
#pragma once

#include "kernels/generic/math.h"
#include "kernels/kernel_table.h"

namespace cadans::kernels {

/// The first `n` < 16 lanes from memory, the others `fill`.
template <class V>
inline typename V::F load_part(const float* x, size_t n, float fill) {
    alignas(64) float lanes[16];
    for (size_t i = 0; i < 16; ++i) lanes[i] = i < n ? x[i] : fill;
    return V::load(lanes);
}

template <class V>
inline void store_part(float* out, typename V::F value, size_t n) {
    alignas(64) float lanes[16];
    V::store(lanes, value);
    for (size_t i = 0; i < n; ++i) out[i] = lanes[i];
}

/// out[i] = op(x[i], y[i]); y may be null, then it reads as x.
template <class V, class Op>
[[gnu::always_inline]] inline void map_row(const float* x, const float* y, size_t n, float* out, const Op& op) {
    if (y == nullptr) y = x;
    size_t i = 0;
    for (; i + 16 <= n; i += 16) V::store(out + i, op(V::load(x + i), V::load(y + i)));
    if (i < n) store_part<V>(out + i, op(load_part<V>(x + i, n - i, 1.0f), load_part<V>(y + i, n - i, 1.0f)), n - i);
}

/// Rows of the table, gathered in a class so that each instance names its vector type.
template <class V>
struct Rows {
    using F = typename V::F;
    using I = typename V::I;

    static void add(const float* a, const float* b, size_t n, float* out) {
        map_row<V>(
            a, b, n, out, [](F x, F y) __attribute__((always_inline)) { return V::add(x, y); });
    }

    static void scale(const float* x, float factor, size_t n, float* out) {
        const F f = V::set1(factor);
        map_row<V>(
            x, nullptr, n, out, [&](F a, F) __attribute__((always_inline)) { return V::mul(a, f); });
    }

    static void silu_mul(const float* gate, const float* up, size_t n, float* out) {
        map_row<V>(
            gate, up, n, out, [](F g, F u) __attribute__((always_inline)) { return V::mul(silu_lanes<V>(g), u); });
    }

    static void gelu_mul(const float* gate, const float* up, size_t n, float* out) {
        map_row<V>(
            gate, up, n, out, [](F g, F u) __attribute__((always_inline)) { return V::mul(gelu_lanes<V>(g), u); });
    }

    static void softcap(const float* x, float cap, size_t n, float* out) {
        const F c = V::set1(cap);
        map_row<V>(
            x, nullptr, n, out, [&](F a, F) __attribute__((always_inline)) { return softcap_lanes<V>(a, c); });
    }

    static void exp_shifted(const float* x, size_t n, float m, float* out) {
        const F shift = V::set1(m);
        map_row<V>(
            x, nullptr, n, out, [&](F a, F) __attribute__((always_inline)) { return exp_lanes<V>(V::sub(a, shift)); });
    }

    /// Quantises 32 values held in two vectors.
    [[gnu::always_inline]] static void quantize_group(F a, F b, ActivationGroup& out) {
        const I magnitude = V::iset1(INT32_MAX);
        const float largest = V::reduce_max(
            V::max(V::as_float(V::iand(V::as_int(a), magnitude)), V::as_float(V::iand(V::as_int(b), magnitude))));
        const bool zero = !(largest >= kSmallestGroup);
        const F factor = V::set1(zero ? 0.0f : 127.0f / largest);
        const I low = codes(V::mul(a, factor));
        const I high = codes(V::mul(b, factor));
        V::store_s8(out.codes, low);
        V::store_s8(out.codes + 16, high);
        out.scale = zero ? 0.0f : largest / 127.0f;
        int16_t low_pairs[2];
        V::negated_pair_sums(out.codes, low_pairs);
        V::negated_pair_sums(out.codes + 16, out.neg_pairs_hi);
        for (size_t i = 0; i < 2; ++i) out.neg_pairs[i] = static_cast<int16_t>(low_pairs[i] + out.neg_pairs_hi[i]);
        out.scaled_sum = out.scale * static_cast<float>(-(out.neg_pairs[0] + out.neg_pairs[1]));
    }

    static void quantize_row(const float* x, size_t n, ActivationGroup* out) {
        for (size_t g = 0; g < n / kGroup; ++g)
            quantize_group(V::load(x + kGroup * g), V::load(x + kGroup * g + 16), out[g]);
    }

    /// 1 / sqrt(mean of squares + eps), in all lanes.
    static F inverse_norm(const float* x, size_t n, float eps) {
        F sum = V::set1(0.0f);
        size_t i = 0;
        for (; i + 16 <= n; i += 16) {
            const F a = V::load(x + i);
            sum = V::fma(a, a, sum);
        }
        if (i < n) {
            const F a = load_part<V>(x + i, n - i, 0.0f);
            sum = V::fma(a, a, sum);
        }
        const float mean = V::tree_sum(sum) / static_cast<float>(n);
        return V::div(V::set1(1.0f), V::sqrt(V::set1(mean + eps)));
    }

    static void rms_norm(const float* x, const float* weight, size_t n, float eps, float* out) {
        const F inverse = inverse_norm(x, n, eps);
        if (weight == nullptr)
            map_row<V>(
                x, nullptr, n, out, [&](F a, F) __attribute__((always_inline)) { return V::mul(a, inverse); });
        else
            map_row<V>(
                x, weight, n,
                out, [&](F a, F w) __attribute__((always_inline)) { return V::mul(V::mul(a, inverse), w); });
    }

    static void rms_norm_quantize(const float* x, const float* weight, size_t n, float eps, ActivationGroup* out) {
        const F inverse = inverse_norm(x, n, eps);
        for (size_t i = 0; i + kGroup <= n; i += kGroup) {
            F a = V::mul(V::load(x + i), inverse);
            F b = V::mul(V::load(x + i + 16), inverse);
            if (weight != nullptr) {
                a = V::mul(a, V::load(weight + i));
                b = V::mul(b, V::load(weight + i + 16));
            }
            quantize_group(a, b, out[i / kGroup]);
        }
    }

    static void rope(float* x, size_t n_heads, size_t head_stride, size_t n_rot, const float* cos, const float* sin,
                     RopeStyle style) {
        const size_t half = n_rot / 2;
        for (size_t h = 0; h < n_heads; ++h, x += head_stride) {
            for (size_t i = 0; i < half; i += 16) {
                const size_t count = half - i < 16 ? half - i : 16;
                if (style == RopeStyle::neox)
                    turn_halves(x + i, x + half + i, count, cos + i, sin + i);
                else
                    turn_pairs(x + 2 * i, count, cos + i, sin + i);
            }
        }
    }

    static void to_f16(const float* x, size_t n, uint16_t* out) {
        size_t i = 0;
        for (; i + 16 <= n; i += 16) V::store_f16(out + i, V::load(x + i));
        if (i < n) {
            uint16_t halves[16];
            V::store_f16(halves, load_part<V>(x + i, n - i, 0.0f));
            for (size_t j = 0; i + j < n; ++j) out[i + j] = halves[j];
        }
    }

    static void from_f16(const uint16_t* x, size_t n, float* out) {
        size_t i = 0;
        for (; i + 16 <= n; i += 16) V::store(out + i, V::load_f16(x + i));
        if (i < n) {
            uint16_t halves[16] = {};
            for (size_t j = 0; i + j < n; ++j) halves[j] = x[i + j];
            store_part<V>(out + i, V::load_f16(halves), n - i);
        }
    }

    static float max(const float* x, size_t n) {
        F best = V::set1(-__builtin_inff());
        size_t i = 0;
        for (; i + 16 <= n; i += 16) best = V::max(V::load(x + i), best);
        if (i < n) best = V::max(load_part<V>(x + i, n - i, -__builtin_inff()), best);
        return V::reduce_max(best);
    }

    static float sum_exp(const float* x, size_t n, float m) {
        const F shift = V::set1(m);
        F sum = V::set1(0.0f);
        size_t i = 0;
        for (; i + 16 <= n; i += 16) sum = V::add(sum, exp_lanes<V>(V::sub(V::load(x + i), shift)));
        if (i < n) sum = V::add(sum, exp_lanes<V>(V::sub(load_part<V>(x + i, n - i, -__builtin_inff()), shift)));
        return V::tree_sum(sum);
    }

  private:
    /// Below this magnitude a group counts as zero: its scale would lose bits or 127 / largest would overflow.
    static constexpr float kSmallestGroup = 0x1p-100f;

    /// Nearest integers within +-127; a NaN becomes some code in that range.
    [[gnu::always_inline]] static I codes(F x) {
        const F bounded = V::max(V::min(x, V::set1(127.0f)), V::set1(-127.0f));
        F whole;
        return round_lanes<V>(bounded, whole);
    }

    [[gnu::always_inline]] static void turn(F& a, F& b, F c, F s) {
        const F turned = V::fnma(b, s, V::mul(a, c));
        b = V::fma(a, s, V::mul(b, c));
        a = turned;
    }

    static void turn_halves(float* x, float* y, size_t count, const float* cos, const float* sin) {
        if (count == 16) {
            F a = V::load(x), b = V::load(y);
            turn(a, b, V::load(cos), V::load(sin));
            V::store(x, a);
            V::store(y, b);
            return;
        }
        F a = load_part<V>(x, count, 0.0f), b = load_part<V>(y, count, 0.0f);
        turn(a, b, load_part<V>(cos, count, 0.0f), load_part<V>(sin, count, 0.0f));
        store_part<V>(x, a, count);
        store_part<V>(y, b, count);
    }

    static void turn_pairs(float* x, size_t count, const float* cos, const float* sin) {
        alignas(64) float padded[32] = {};
        float* at = x;
        if (count < 16) {
            for (size_t i = 0; i < 2 * count; ++i) padded[i] = x[i];
            at = padded;
        }
        F a, b, first, second;
        V::deinterleave(V::load(at), V::load(at + 16), a, b);
        if (count == 16)
            turn(a, b, V::load(cos), V::load(sin));
        else
            turn(a, b, load_part<V>(cos, count, 0.0f), load_part<V>(sin, count, 0.0f));
        V::interleave(a, b, first, second);
        V::store(at, first);
        V::store(at + 16, second);
        if (count < 16)
            for (size_t i = 0; i < 2 * count; ++i) x[i] = padded[i];
    }
};

}  // namespace cadans::kernels
