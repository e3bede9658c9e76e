// exp, log, tanh, silu and gelu of sixteen lanes: one polynomial each, the same bits everywhere.
//
// Source: reductions and coefficients in the manner of Cephes (Moshier 1989); accuracy is tested against libm.
#pragma once

#include <cstdint>

#include "kernels/generic/unroll.h"

namespace cadans::kernels {

/// `whole` = x rounded to an integer (nearest, ties to even) for |x| < 2^22, and the same as an integer.
template <class V>
[[gnu::always_inline]] inline typename V::I round_lanes(typename V::F x, typename V::F& whole) {
    const auto bias = V::set1(12582912.0f);  // 1.5 * 2^23: the sum's last bit is worth one
    const auto sum = V::add(x, bias);
    whole = V::sub(sum, bias);
    return V::isub(V::as_int(sum), V::as_int(bias));
}

/// exp(x): exactly 1 at 0, exactly 0 from -105 down, infinity from 89 up; NaN stays NaN.
template <class V>
[[gnu::always_inline]] inline typename V::F exp_lanes(typename V::F x) {
    x = V::min(V::set1(90.0f), V::max(V::set1(-105.0f), x));  // second operand last: NaN passes through
    typename V::F n;
    const auto exponent = round_lanes<V>(V::mul(x, V::set1(1.44269504f)), n);
    auto r = V::fnma(n, V::set1(0.693359375f), x);
    r = V::fnma(n, V::set1(-2.12194440e-4f), r);
    auto p = V::set1(1.9875691500e-4f);
    p = V::fma(p, r, V::set1(1.3981999507e-3f));
    p = V::fma(p, r, V::set1(8.3334519073e-3f));
    p = V::fma(p, r, V::set1(4.1665795894e-2f));
    p = V::fma(p, r, V::set1(1.6666665459e-1f));
    p = V::fma(p, r, V::set1(5.0000001201e-1f));
    p = V::add(V::fma(p, V::mul(r, r), r), V::set1(1.0f));
    return V::scale_by_power(p, exponent);
}

/// Natural logarithm of positive normal numbers.
template <class V>
[[gnu::always_inline]] inline typename V::F log_lanes(typename V::F x) {
    const auto bits = V::as_int(x);
    // Mantissa in [1/2, 1), then in [sqrt(1/2), sqrt(2)).
    auto e = V::to_float(V::isub(V::template ishr<23>(bits), V::iset1(126)));
    auto m = V::as_float(V::ior(V::iand(bits, V::iset1(0x007FFFFF)), V::iset1(0x3F000000)));
    const auto root = V::set1(0.707106781f), one = V::set1(1.0f);
    e = V::select_gt(root, m, V::sub(e, one), e);
    m = V::sub(V::select_gt(root, m, V::add(m, m), m), one);
    const auto square = V::mul(m, m);
    auto p = V::set1(7.0376836292e-2f);
    p = V::fma(p, m, V::set1(-1.1514610310e-1f));
    p = V::fma(p, m, V::set1(1.1676998740e-1f));
    p = V::fma(p, m, V::set1(-1.2420140846e-1f));
    p = V::fma(p, m, V::set1(1.4249322787e-1f));
    p = V::fma(p, m, V::set1(-1.6668057665e-1f));
    p = V::fma(p, m, V::set1(2.0000714765e-1f));
    p = V::fma(p, m, V::set1(-2.4999993993e-1f));
    p = V::fma(p, m, V::set1(3.3333331174e-1f));
    auto y = V::mul(V::mul(p, m), square);
    y = V::fma(e, V::set1(-2.12194440e-4f), y);
    y = V::fnma(V::set1(0.5f), square, y);
    return V::fma(e, V::set1(0.693359375f), V::add(m, y));
}

/// tanh(x): odd, within [-1, 1].
template <class V>
[[gnu::always_inline]] inline typename V::F tanh_lanes(typename V::F x) {
    const auto sign = V::iand(V::as_int(x), V::iset1(INT32_MIN));
    const auto magnitude = V::as_float(V::iand(V::as_int(x), V::iset1(INT32_MAX)));
    const auto one = V::set1(1.0f);
    const auto e = exp_lanes<V>(V::add(magnitude, magnitude));
    const auto large = V::sub(one, V::div(V::set1(2.0f), V::add(e, one)));
    const auto square = V::mul(x, x);
    auto p = V::set1(-5.70498872745e-3f);
    p = V::fma(p, square, V::set1(2.06390887954e-2f));
    p = V::fma(p, square, V::set1(-5.37397155531e-2f));
    p = V::fma(p, square, V::set1(1.33314422036e-1f));
    p = V::fma(p, square, V::set1(-3.33332819422e-1f));
    const auto small = V::fma(V::mul(p, square), magnitude, magnitude);
    const auto value = V::select_gt(V::set1(0.625f), magnitude, small, large);
    return V::as_float(V::ior(V::as_int(value), sign));
}

template <class V>
[[gnu::always_inline]] inline typename V::F silu_lanes(typename V::F x) {
    const auto minus = V::as_float(V::ixor(V::as_int(x), V::iset1(INT32_MIN)));
    return V::div(x, V::add(V::set1(1.0f), exp_lanes<V>(minus)));
}

/// The tanh form: x/2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x^3))). Source: Hendrycks & Gimpel 2016.
template <class V>
[[gnu::always_inline]] inline typename V::F gelu_lanes(typename V::F x) {
    const auto cubic = V::fma(V::mul(V::mul(x, x), V::set1(0.044715f)), x, x);
    const auto t = tanh_lanes<V>(V::mul(V::set1(0.797884561f), cubic));
    return V::mul(V::mul(V::set1(0.5f), x), V::add(V::set1(1.0f), t));
}

template <class V>
[[gnu::always_inline]] inline typename V::F softcap_lanes(typename V::F x, typename V::F cap) {
    return V::mul(cap, tanh_lanes<V>(V::div(x, cap)));
}

}  // namespace cadans::kernels
