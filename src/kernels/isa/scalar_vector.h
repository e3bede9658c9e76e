// Sixteen lanes as plain arrays: runs anywhere, and says what the other instruction sets must do.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/generic/unroll.h"
#include "kernels/types.h"

namespace cadans::kernels {
namespace {

/// Vector type of the scalar table; every operation is one IEEE operation (or one exact integer operation) per lane.
struct Scalar {
    struct F {
        float lane[16];
    };
    struct I {
        uint32_t lane[16];
    };
    struct B {
        uint8_t lane[64];
    };

    static constexpr bool kSignedBytes = false;  ///< 8-bit codes enter the dot with 128 taken away
    static constexpr int dot_bits(int) { return 8; }
    static constexpr size_t kTilePanels = 1, kTileRows = 2, kDirectRows = 0, kExpandPanels = 1;
    static constexpr size_t kPassRows = 0;
    static constexpr size_t kFloatPanels = 1, kFloatRows = 4, kFloatGemvPanels = 1;
    static constexpr size_t kAttentionRows = 2;                  ///< query rows that share what they read of a page
    static constexpr size_t score_vectors(size_t) { return 2; }  ///< for so many rows, of 16 tokens
    static constexpr size_t value_vectors(size_t) { return 2; }  ///< for so many rows, of 16 elements of a head
    static constexpr bool kWidensPages = true;  ///< f32 copies of a page pay when more rows than these read it

    template <class Op>
    static F each(const Op& op) {
        F out;
        for (size_t i = 0; i < 16; ++i) out.lane[i] = op(i);
        return out;
    }
    template <class Op>
    static I each_int(const Op& op) {
        I out;
        for (size_t i = 0; i < 16; ++i) out.lane[i] = op(i);
        return out;
    }
    template <class Op>
    static B each_byte(const Op& op) {
        B out;
        for (size_t i = 0; i < 64; ++i) out.lane[i] = static_cast<uint8_t>(op(i));
        return out;
    }

    static F set1(float x) {
        return each([&](size_t) { return x; });
    }
    static F load(const float* p) {
        return each([&](size_t i) { return p[i]; });
    }
    static void store(float* p, F a) { __builtin_memcpy(p, a.lane, sizeof a.lane); }
    static F add(F a, F b) {
        return each([&](size_t i) { return a.lane[i] + b.lane[i]; });
    }
    static F sub(F a, F b) {
        return each([&](size_t i) { return a.lane[i] - b.lane[i]; });
    }
    static F mul(F a, F b) {
        return each([&](size_t i) { return a.lane[i] * b.lane[i]; });
    }
    static F div(F a, F b) {
        return each([&](size_t i) { return a.lane[i] / b.lane[i]; });
    }
    static F fma(F a, F b, F c) {
        return each([&](size_t i) { return __builtin_fmaf(a.lane[i], b.lane[i], c.lane[i]); });
    }
    static F fnma(F a, F b, F c) {
        return each([&](size_t i) { return __builtin_fmaf(-a.lane[i], b.lane[i], c.lane[i]); });
    }
    static F max(F a, F b) {
        return each([&](size_t i) { return a.lane[i] > b.lane[i] ? a.lane[i] : b.lane[i]; });
    }
    static F min(F a, F b) {
        return each([&](size_t i) { return a.lane[i] < b.lane[i] ? a.lane[i] : b.lane[i]; });
    }
    static F sqrt(F a) {
        return each([&](size_t i) { return __builtin_sqrtf(a.lane[i]); });
    }
    /// a > b ? x : y, lane by lane; false when unordered.
    static F select_gt(F a, F b, F x, F y) {
        return each([&](size_t i) { return a.lane[i] > b.lane[i] ? x.lane[i] : y.lane[i]; });
    }
    static F select_ge(F a, F b, F x, F y) {
        return each([&](size_t i) { return a.lane[i] >= b.lane[i] ? x.lane[i] : y.lane[i]; });
    }

    static F load_f16(const void* p) {
        const auto* bytes = static_cast<const char*>(p);
        return each([&](size_t i) {
            uint16_t half;
            __builtin_memcpy(&half, bytes + 2 * i, 2);
            return f16_to_f32(half);
        });
    }
    static void store_f16(void* p, F a) {
        auto* bytes = static_cast<char*>(p);
        for (size_t i = 0; i < 16; ++i) {
            const uint16_t half = f32_to_f16(a.lane[i]);
            __builtin_memcpy(bytes + 2 * i, &half, 2);
        }
    }
    static F load_bf16(const void* p) {
        const auto* bytes = static_cast<const char*>(p);
        return as_float(each_int([&](size_t i) {
            uint16_t half;
            __builtin_memcpy(&half, bytes + 2 * i, 2);
            return static_cast<uint32_t>(half) << 16;
        }));
    }

    static float reduce_max(F a) {
        float best = a.lane[0];
        for (size_t i = 1; i < 16; ++i) best = a.lane[i] > best ? a.lane[i] : best;
        return best;
    }
    /// Lanes i and i+8, then +4, +2, +1.
    static float tree_sum(F a) {
        for (size_t half = 8; half > 0; half /= 2)
            for (size_t i = 0; i < half; ++i) a.lane[i] += a.lane[i + half];
        return a.lane[0];
    }
    /// even: lanes 0, 2, .. of a then of b; odd: the others.
    static void deinterleave(F a, F b, F& even, F& odd) {
        for (size_t i = 0; i < 8; ++i) {
            even.lane[i] = a.lane[2 * i];
            odd.lane[i] = a.lane[2 * i + 1];
            even.lane[i + 8] = b.lane[2 * i];
            odd.lane[i + 8] = b.lane[2 * i + 1];
        }
    }
    static void interleave(F even, F odd, F& a, F& b) {
        for (size_t i = 0; i < 8; ++i) {
            a.lane[2 * i] = even.lane[i];
            a.lane[2 * i + 1] = odd.lane[i];
            b.lane[2 * i] = even.lane[i + 8];
            b.lane[2 * i + 1] = odd.lane[i + 8];
        }
    }

    static I iset1(int32_t x) {
        return each_int([&](size_t) { return static_cast<uint32_t>(x); });
    }
    static I ilanes() {
        return each_int([&](size_t i) { return static_cast<uint32_t>(i); });
    }
    static I iadd(I a, I b) {
        return each_int([&](size_t i) { return a.lane[i] + b.lane[i]; });
    }
    static I isub(I a, I b) {
        return each_int([&](size_t i) { return a.lane[i] - b.lane[i]; });
    }
    static I imul(I a, I b) {
        return each_int([&](size_t i) { return a.lane[i] * b.lane[i]; });
    }
    static I iand(I a, I b) {
        return each_int([&](size_t i) { return a.lane[i] & b.lane[i]; });
    }
    static I ior(I a, I b) {
        return each_int([&](size_t i) { return a.lane[i] | b.lane[i]; });
    }
    static I ixor(I a, I b) {
        return each_int([&](size_t i) { return a.lane[i] ^ b.lane[i]; });
    }
    template <int kBy>
    static I ishl(I a) {
        return each_int([&](size_t i) { return a.lane[i] << kBy; });
    }
    template <int kBy>
    static I ishr(I a) {
        return each_int([&](size_t i) { return a.lane[i] >> kBy; });
    }
    template <int kBy>
    static I isar(I a) {
        return each_int([&](size_t i) { return static_cast<uint32_t>(static_cast<int32_t>(a.lane[i]) >> kBy); });
    }
    static F to_float(I a) {
        return each([&](size_t i) { return static_cast<float>(static_cast<int32_t>(a.lane[i])); });
    }
    static I as_int(F a) {
        I out;
        __builtin_memcpy(&out, &a, sizeof out);
        return out;
    }
    static F as_float(I a) {
        F out;
        __builtin_memcpy(&out, &a, sizeof out);
        return out;
    }
    static I widen_u8(const void* p) {
        const auto* bytes = static_cast<const uint8_t*>(p);
        return each_int([&](size_t i) { return static_cast<uint32_t>(bytes[i]); });
    }
    static I widen_s8(const void* p) {
        const auto* bytes = static_cast<const int8_t*>(p);
        return each_int([&](size_t i) { return static_cast<uint32_t>(static_cast<int32_t>(bytes[i])); });
    }
    /// The low byte of each lane.
    static void store_s8(int8_t* p, I a) {
        for (size_t i = 0; i < 16; ++i) p[i] = static_cast<int8_t>(a.lane[i] & 0xFFu);
    }
    /// -(sum of the codes with i % 4 below 2), then of the others, of 16 codes.
    static void negated_pair_sums(const int8_t* p, int16_t* out) {
        out[0] = out[1] = 0;
        for (size_t i = 0; i < 16; ++i) out[i / 2 % 2] = static_cast<int16_t>(out[i / 2 % 2] - p[i]);
    }
    /// a * 2^n, rounded once, for |a| in [1/2, 4] and |n| <= 200: in two factors, of which the first is exact.
    static F scale_by_power(F a, I n) {
        const I half = isar<1>(n);
        return mul(mul(a, power_of_two(half)), power_of_two(isub(n, half)));
    }

    static B bload(const void* p) {
        B out;
        __builtin_memcpy(&out, p, sizeof out);
        return out;
    }
    static void bstore(void* p, B a) { __builtin_memcpy(p, &a, sizeof a); }
    static B bmask(B a, uint8_t mask) {
        return each_byte([&](size_t i) { return a.lane[i] & mask; });
    }
    static B bor(B a, B b) {
        return each_byte([&](size_t i) { return a.lane[i] | b.lane[i]; });
    }
    /// Shifts whose bits that cross from the neighbour byte the caller masks away (here none cross).
    template <int kBy>
    static B bshl(B a) {
        return each_byte([&](size_t i) { return a.lane[i] << kBy; });
    }
    template <int kBy>
    static B bshr(B a) {
        return each_byte([&](size_t i) { return a.lane[i] >> kBy; });
    }

    /// table[code] of codes below 16.
    static B blookup(const uint8_t* table, B codes) {
        return each_byte([&](size_t i) { return table[codes.lane[i] & 15]; });
    }

    /// The difference of 16-bit halves of lanes.
    static I isub_pairs(I a, I b) {
        return each_int([&](size_t i) {
            return ((a.lane[i] - b.lane[i]) & 0xFFFFu) | (((a.lane[i] >> 16) - (b.lane[i] >> 16)) << 16);
        });
    }
    /// Codes as `dot` takes them from expanded panels.
    template <int kBits>
    static B expanded(B codes) {
        return codes;
    }

    /// sum[p][n] = for each of 16 rows, over kChunks chunks of 4 inputs, the sum of code * activation, plus zero * (the
    /// sum of the two halves of pairs(n)) where there is a zero point; exact.
    ///
    /// zero  the zero point in each 16-bit half of a lane
    template <class Shape, size_t kChunks, size_t kPanels, size_t kRows, class Source, class Pairs>
    static void dot(const Source (&source)[kPanels], const int8_t* const (&a)[kRows], const Pairs& pairs, I zero,
                    I (&sum)[kPanels][kRows]) {
        for (size_t n = 0; n < kRows; ++n) {
            const I start = Shape::kZero ? pair_products(pairs(n), zero) : iset1(0);
            for (size_t p = 0; p < kPanels; ++p) sum[p][n] = start;
        }
        unroll<kChunks>([&](auto c) {
            for (size_t p = 0; p < kPanels; ++p) {
                const B w = source[p].template chunk<c.value>();
                for (size_t n = 0; n < kRows; ++n) dot_chunk(w, a[n] + 4 * c.value, sum[p][n]);
            }
        });
    }

  private:
    /// Low half times low half plus high half times high half, signed.
    static I pair_products(I a, I b) {
        return each_int([&](size_t i) {
            return static_cast<uint32_t>(half(a.lane[i]) * half(b.lane[i]) +
                                         half(a.lane[i] >> 16) * half(b.lane[i] >> 16));
        });
    }
    static int32_t half(uint32_t x) { return static_cast<int16_t>(x & 0xFFFFu); }
    static F power_of_two(I n) { return as_float(ishl<23>(iadd(n, iset1(127)))); }

    static void dot_chunk(const B& w, const int8_t* a, I& sum) {
        for (size_t r = 0; r < 16; ++r) {
            int32_t total = 0;
            for (size_t i = 0; i < 4; ++i)
                total += static_cast<int32_t>(w.lane[4 * r + i]) * static_cast<int32_t>(a[i]);
            sum.lane[r] += static_cast<uint32_t>(total);
        }
    }
};

}  // namespace
}  // namespace cadans::kernels
