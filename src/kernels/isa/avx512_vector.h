// Sixteen lanes as one 512-bit register, dot products by VNNI.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "kernels/generic/unroll.h"
#include "kernels/isa/avx512_shape.h"

namespace cadans::kernels {
namespace {

/// Vector type of the avx512 table (F, BW, DQ, VL, VNNI); see Scalar for what each operation means.
struct Avx512 : Avx512Shape {
    using F = __m512;
    using I = __m512i;
    using B = __m512i;

    static F set1(float x) { return _mm512_set1_ps(x); }
    static F load(const float* p) { return _mm512_loadu_ps(p); }
    static void store(float* p, F a) { _mm512_storeu_ps(p, a); }
    static F add(F a, F b) { return _mm512_add_ps(a, b); }
    static F sub(F a, F b) { return _mm512_sub_ps(a, b); }
    static F mul(F a, F b) { return _mm512_mul_ps(a, b); }
    static F div(F a, F b) { return _mm512_div_ps(a, b); }
    static F fma(F a, F b, F c) { return _mm512_fmadd_ps(a, b, c); }
    static F fnma(F a, F b, F c) { return _mm512_fnmadd_ps(a, b, c); }
    static F max(F a, F b) { return _mm512_max_ps(a, b); }
    static F min(F a, F b) { return _mm512_min_ps(a, b); }
    static F sqrt(F a) { return _mm512_sqrt_ps(a); }
    static F select_gt(F a, F b, F x, F y) { return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(a, b, _CMP_GT_OQ), y, x); }
    static F select_ge(F a, F b, F x, F y) { return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(a, b, _CMP_GE_OQ), y, x); }

    static F load_f16(const void* p) { return _mm512_cvtph_ps(load256(p)); }
    static void store_f16(void* p, F a) {
        _mm256_storeu_si256(static_cast<__m256i_u*>(p), _mm512_cvtps_ph(a, _MM_FROUND_TO_NEAREST_INT));
    }
    static F load_bf16(const void* p) {
        return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(load256(p)), 16));
    }

    static float reduce_max(F a) {
        const __m256 m8 = _mm256_max_ps(low(a), high(a));
        const __m128 m4 = _mm_max_ps(_mm256_castps256_ps128(m8), _mm256_extractf128_ps(m8, 1));
        const __m128 m2 = _mm_max_ps(m4, _mm_movehl_ps(m4, m4));
        return _mm_cvtss_f32(_mm_max_ss(m2, _mm_movehdup_ps(m2)));
    }
    static float tree_sum(F a) {
        const __m256 s8 = _mm256_add_ps(low(a), high(a));
        const __m128 s4 = _mm_add_ps(_mm256_castps256_ps128(s8), _mm256_extractf128_ps(s8, 1));
        const __m128 s2 = _mm_add_ps(s4, _mm_movehl_ps(s4, s4));
        return _mm_cvtss_f32(_mm_add_ss(s2, _mm_movehdup_ps(s2)));
    }
    static void deinterleave(F a, F b, F& even, F& odd) {
        const I first = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
        even = _mm512_permutex2var_ps(a, first, b);
        odd = _mm512_permutex2var_ps(a, _mm512_add_epi32(first, _mm512_set1_epi32(1)), b);
    }
    static void interleave(F even, F odd, F& a, F& b) {
        const I first = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
        a = _mm512_permutex2var_ps(even, first, odd);
        b = _mm512_permutex2var_ps(even, _mm512_add_epi32(first, _mm512_set1_epi32(8)), odd);
    }

    static I iset1(int32_t x) { return _mm512_set1_epi32(x); }
    static I ilanes() { return _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15); }
    static I iadd(I a, I b) { return _mm512_add_epi32(a, b); }
    static I isub(I a, I b) { return _mm512_sub_epi32(a, b); }
    static I imul(I a, I b) { return _mm512_mullo_epi32(a, b); }
    static I iand(I a, I b) { return _mm512_and_si512(a, b); }
    static I ior(I a, I b) { return _mm512_or_si512(a, b); }
    static I ixor(I a, I b) { return _mm512_xor_si512(a, b); }
    template <int kBy>
    static I ishl(I a) {
        return _mm512_slli_epi32(a, kBy);
    }
    template <int kBy>
    static I ishr(I a) {
        return _mm512_srli_epi32(a, kBy);
    }
    template <int kBy>
    static I isar(I a) {
        return _mm512_srai_epi32(a, kBy);
    }
    static F to_float(I a) { return _mm512_cvtepi32_ps(a); }
    static I as_int(F a) { return _mm512_castps_si512(a); }
    static F as_float(I a) { return _mm512_castsi512_ps(a); }
    static I widen_u8(const void* p) { return _mm512_cvtepu8_epi32(load128(p)); }
    static I widen_s8(const void* p) { return _mm512_cvtepi8_epi32(load128(p)); }
    static void store_s8(int8_t* p, I a) { _mm_storeu_si128(reinterpret_cast<__m128i_u*>(p), _mm512_cvtepi32_epi8(a)); }
    /// -(sum of the codes with i % 4 below 2), then of the others, of 16 codes.
    static void negated_pair_sums(const int8_t* p, int16_t* out) {
        const __m128i pairs = _mm_maddubs_epi16(_mm_set1_epi8(1), load128(p));
        const __m128i four = _mm_add_epi16(pairs, _mm_shuffle_epi32(pairs, 0x4E));
        const __m128i two = _mm_add_epi16(four, _mm_shuffle_epi32(four, 0xB1));
        const int32_t both = _mm_cvtsi128_si32(_mm_sub_epi16(_mm_setzero_si128(), two));
        __builtin_memcpy(out, &both, sizeof both);
    }
    static F scale_by_power(F a, I n) { return _mm512_scalef_ps(a, _mm512_cvtepi32_ps(n)); }

    static B bload(const void* p) { return _mm512_loadu_si512(p); }
    static void bstore(void* p, B a) { _mm512_storeu_si512(p, a); }
    static B bmask(B a, uint8_t mask) { return _mm512_and_si512(a, _mm512_set1_epi8(static_cast<char>(mask))); }
    static B bor(B a, B b) { return _mm512_or_si512(a, b); }
    template <int kBy>
    static B bshl(B a) {
        return _mm512_slli_epi16(a, kBy);
    }
    template <int kBy>
    static B bshr(B a) {
        return _mm512_srli_epi16(a, kBy);
    }

    static B blookup(const uint8_t* table, B codes) {
        return _mm512_shuffle_epi8(_mm512_broadcast_i32x4(load128(table)), codes);
    }

    static I isub_pairs(I a, I b) { return _mm512_sub_epi16(a, b); }
    template <int kBits>
    static B expanded(B codes) {
        return codes;
    }

    template <class Shape, size_t kChunks, size_t kPanels, size_t kRows, class Source, class Pairs>
    [[gnu::always_inline]] static void dot(const Source (&source)[kPanels], const int8_t* const (&a)[kRows],
                                           const Pairs& pairs, I zero, I (&sum)[kPanels][kRows]) {
        unroll<kRows>([&](auto n) __attribute__((always_inline)) {
            I start = _mm512_setzero_si512();
            if constexpr (Shape::kZero) start = _mm512_madd_epi16(pairs(n.value), zero);
            unroll<kPanels>([&](auto p) __attribute__((always_inline)) { sum[p.value][n.value] = start; });
        });
        unroll<kChunks>([&](auto c) __attribute__((always_inline)) {
            B w[kPanels];
            unroll<kPanels>([&](auto p) __attribute__((always_inline)) {
                w[p.value] = source[p.value].template chunk<c.value>();
            });
            unroll<kRows>([&](auto n) __attribute__((always_inline)) {
                int32_t four;
                __builtin_memcpy(&four, a[n.value] + 4 * c.value, 4);
                const I x = _mm512_set1_epi32(four);
                unroll<kPanels>([&](auto p) __attribute__((always_inline)) {
                    sum[p.value][n.value] = _mm512_dpbusd_epi32(sum[p.value][n.value], w[p.value], x);
                });
            });
        });
    }

  private:
    static __m256 low(F a) { return _mm512_castps512_ps256(a); }
    static __m256 high(F a) { return _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(a), 1)); }
    static __m256i load256(const void* p) { return _mm256_loadu_si256(static_cast<const __m256i_u*>(p)); }
    static __m128i load128(const void* p) { return _mm_loadu_si128(static_cast<const __m128i_u*>(p)); }
};

}  // namespace
}  // namespace cadans::kernels
