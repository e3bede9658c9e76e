// The choice of a token: argmax, plain or with Gumbel noise that is a pure function of key and token.
#pragma once

#include "kernels/generic/math.h"
#include "kernels/generic/rows.h"

namespace cadans::kernels {

template <class V>
struct Choose {
    using F = typename V::F;
    using I = typename V::I;

    static size_t argmax(const float* x, size_t n) {
        Best best;
        for (size_t i = 0; i < n; i += 16) best.take(load_or_pad(x, i, n), i);
        const size_t found = best.lowest(n);
        return found == n ? 0 : found;
    }

    static size_t gumbel_argmax(const float* x, size_t n, float inv_temperature, float threshold, uint64_t key) {
        const F inverse = V::set1(inv_temperature), bound = V::set1(threshold), none = V::set1(-__builtin_inff());
        const I key_low = V::iset1(static_cast<int32_t>(key & 0xFFFFFFFFu));
        const I key_high = V::iset1(static_cast<int32_t>(key >> 32));
        Best best;
        for (size_t i = 0; i < n; i += 16) {
            const F a = load_or_pad(x, i, n);
            const F noisy = V::fma(a, inverse, gumbel(key_low, key_high, i));
            best.take(V::select_ge(a, bound, noisy, none), i);
        }
        return best.lowest(n);
    }

  private:
    /// The best value of each lane and where it stood; a later equal value does not replace it.
    struct Best {
        F value = V::set1(-__builtin_inff());
        F place = V::as_float(V::iset1(-1));

        [[gnu::always_inline]] void take(F x, size_t first) {
            const I at = V::iadd(V::ilanes(), V::iset1(static_cast<int32_t>(first)));
            place = V::select_gt(x, value, V::as_float(at), place);
            value = V::select_gt(x, value, x, value);
        }

        size_t lowest(size_t n) const {
            float values[16];
            uint32_t places[16];
            V::store(values, value);
            float as_floats[16];
            V::store(as_floats, place);
            __builtin_memcpy(places, as_floats, sizeof places);
            size_t found = n;
            float largest = 0.0f;
            for (size_t i = 0; i < 16; ++i) {
                if (places[i] >= n) continue;
                if (found == n || values[i] > largest || (values[i] == largest && places[i] < found)) {
                    found = places[i];
                    largest = values[i];
                }
            }
            return found;
        }
    };

    [[gnu::always_inline]] static F load_or_pad(const float* x, size_t i, size_t n) {
        return i + 16 <= n ? V::load(x + i) : load_part<V>(x + i, n - i, -__builtin_inff());
    }

    /// Standard Gumbel noise of tokens first .. first+15: -log(-log(u)), u from a 32-bit hash of key and token.
    /// Source: finalisers of MurmurHash3 (Appleby) and of lowbias32 (Wellons).
    [[gnu::always_inline]] static F gumbel(I key_low, I key_high, size_t first) {
        I h = V::iadd(V::ilanes(), V::iset1(static_cast<int32_t>(first)));
        h = V::iadd(V::imul(h, V::iset1(static_cast<int32_t>(0x9E3779B1u))), key_low);
        h = V::imul(V::ixor(h, V::template ishr<16>(h)), V::iset1(static_cast<int32_t>(0x85EBCA6Bu)));
        h = V::imul(V::ixor(h, V::template ishr<13>(h)), V::iset1(static_cast<int32_t>(0xC2B2AE35u)));
        h = V::ixor(V::ixor(h, V::template ishr<16>(h)), key_high);
        h = V::imul(V::ixor(h, V::template ishr<16>(h)), V::iset1(static_cast<int32_t>(0x7FEB352Du)));
        h = V::imul(V::ixor(h, V::template ishr<15>(h)), V::iset1(static_cast<int32_t>(0x846CA68Bu)));
        h = V::ixor(h, V::template ishr<16>(h));
        const F whole = V::to_float(V::template ishr<9>(h));
        const F u = V::mul(V::add(whole, V::set1(0.5f)), V::set1(0x1p-23f));  // inside (0, 1), exact
        const F minus_log = V::sub(V::set1(0.0f), log_lanes<V>(u));
        return V::sub(V::set1(0.0f), log_lanes<V>(minus_log));
    }
};

}  // namespace cadans::kernels
