// Sixteen lanes as two 256-bit registers, dot products by 16-bit sums that stay exact.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "kernels/generic/unroll.h"

namespace cadans::kernels {
namespace {

/// How many products-of-pairs of vpmaddubsw fit a 16-bit sum, with activations within +-127.
template <int kBits>
struct ExactAdds;
template <>
struct ExactAdds<4> {
    static constexpr int kCount = 8;
};
template <>
struct ExactAdds<5> {
    static constexpr int kCount = 4;
};
template <>
struct ExactAdds<6> {
    static constexpr int kCount = 2;
};
template <>
struct ExactAdds<8> {
    static constexpr int kCount = 1;
};
constexpr int kLargestActivation = 127;
static_assert(ExactAdds<4>::kCount * 2 * 15 * kLargestActivation <= 32767);
static_assert(ExactAdds<5>::kCount * 2 * 31 * kLargestActivation <= 32767);
static_assert(ExactAdds<6>::kCount * 2 * 63 * kLargestActivation <= 32767);
static_assert(ExactAdds<8>::kCount * 2 * 128 * kLargestActivation <= 32767);  // magnitudes of signed codes

/// Vector type of the avx2 table (AVX2, FMA, F16C); see Scalar for what each operation means.
struct Avx2 {
    struct F {
        __m256 lo, hi;
    };
    struct I {
        __m256i lo, hi;
    };
    using B = I;

    // 16 registers: 4 x 2 16-bit sums leave room for weights and a broadcast; f32 sums live in L1.
    static constexpr bool kSignedBytes = true;                ///< 8-bit codes enter the dot with 128 taken away
    static constexpr int dot_bits(int bits) { return bits; }  ///< decides how many 16-bit sums are exact
    static constexpr size_t kTilePanels = 1, kTileRows = 4, kDirectRows = 4;
    static constexpr size_t kExpandPanels = 4;  ///< 20 KiB of L1; a tile's rows are read once for all of them
    static constexpr size_t kFloatPanels = 1, kFloatRows = 6, kFloatGemvPanels = 4;
    static constexpr size_t kAttentionRows = 6;  ///< 6 x 2 sums, two of keys or values, a broadcast
    static constexpr size_t score_vectors(size_t rows) { return rows <= 2 ? 2 : 1; }
    static constexpr size_t value_vectors(size_t rows) { return rows <= 2 ? 2 : 1; }
    static constexpr bool kWidensPages = false;  ///< conversion from f16 runs beside the products

    static F set1(float x) { return both(_mm256_set1_ps(x)); }
    static F load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
    static void store(float* p, F a) {
        _mm256_storeu_ps(p, a.lo);
        _mm256_storeu_ps(p + 8, a.hi);
    }
    static F add(F a, F b) { return {_mm256_add_ps(a.lo, b.lo), _mm256_add_ps(a.hi, b.hi)}; }
    static F sub(F a, F b) { return {_mm256_sub_ps(a.lo, b.lo), _mm256_sub_ps(a.hi, b.hi)}; }
    static F mul(F a, F b) { return {_mm256_mul_ps(a.lo, b.lo), _mm256_mul_ps(a.hi, b.hi)}; }
    static F div(F a, F b) { return {_mm256_div_ps(a.lo, b.lo), _mm256_div_ps(a.hi, b.hi)}; }
    static F fma(F a, F b, F c) { return {_mm256_fmadd_ps(a.lo, b.lo, c.lo), _mm256_fmadd_ps(a.hi, b.hi, c.hi)}; }
    static F fnma(F a, F b, F c) { return {_mm256_fnmadd_ps(a.lo, b.lo, c.lo), _mm256_fnmadd_ps(a.hi, b.hi, c.hi)}; }
    static F max(F a, F b) { return {_mm256_max_ps(a.lo, b.lo), _mm256_max_ps(a.hi, b.hi)}; }
    static F min(F a, F b) { return {_mm256_min_ps(a.lo, b.lo), _mm256_min_ps(a.hi, b.hi)}; }
    static F sqrt(F a) { return {_mm256_sqrt_ps(a.lo), _mm256_sqrt_ps(a.hi)}; }
    static F select_gt(F a, F b, F x, F y) {
        return {_mm256_blendv_ps(y.lo, x.lo, _mm256_cmp_ps(a.lo, b.lo, _CMP_GT_OQ)),
                _mm256_blendv_ps(y.hi, x.hi, _mm256_cmp_ps(a.hi, b.hi, _CMP_GT_OQ))};
    }
    static F select_ge(F a, F b, F x, F y) {
        return {_mm256_blendv_ps(y.lo, x.lo, _mm256_cmp_ps(a.lo, b.lo, _CMP_GE_OQ)),
                _mm256_blendv_ps(y.hi, x.hi, _mm256_cmp_ps(a.hi, b.hi, _CMP_GE_OQ))};
    }

    static F load_f16(const void* p) { return {_mm256_cvtph_ps(load128(p)), _mm256_cvtph_ps(load128(next16(p)))}; }
    static void store_f16(void* p, F a) {
        auto* to = static_cast<__m128i_u*>(p);
        _mm_storeu_si128(to, _mm256_cvtps_ph(a.lo, _MM_FROUND_TO_NEAREST_INT));
        _mm_storeu_si128(to + 1, _mm256_cvtps_ph(a.hi, _MM_FROUND_TO_NEAREST_INT));
    }
    static F load_bf16(const void* p) {
        return {_mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(load128(p)), 16)),
                _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(load128(next16(p))), 16))};
    }

    static float reduce_max(F a) {
        const __m256 m8 = _mm256_max_ps(a.lo, a.hi);
        const __m128 m4 = _mm_max_ps(_mm256_castps256_ps128(m8), _mm256_extractf128_ps(m8, 1));
        const __m128 m2 = _mm_max_ps(m4, _mm_movehl_ps(m4, m4));
        return _mm_cvtss_f32(_mm_max_ss(m2, _mm_movehdup_ps(m2)));
    }
    static float tree_sum(F a) {
        const __m256 s8 = _mm256_add_ps(a.lo, a.hi);
        const __m128 s4 = _mm_add_ps(_mm256_castps256_ps128(s8), _mm256_extractf128_ps(s8, 1));
        const __m128 s2 = _mm_add_ps(s4, _mm_movehl_ps(s4, s4));
        return _mm_cvtss_f32(_mm_add_ss(s2, _mm_movehdup_ps(s2)));
    }
    static void deinterleave(F a, F b, F& even, F& odd) {
        even = {pick<0x88>(a.lo, a.hi), pick<0x88>(b.lo, b.hi)};
        odd = {pick<0xDD>(a.lo, a.hi), pick<0xDD>(b.lo, b.hi)};
    }
    static void interleave(F even, F odd, F& a, F& b) {
        a = weave(even.lo, odd.lo);
        b = weave(even.hi, odd.hi);
    }

    static I iset1(int32_t x) { return {_mm256_set1_epi32(x), _mm256_set1_epi32(x)}; }
    static I ilanes() {
        return {_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), _mm256_setr_epi32(8, 9, 10, 11, 12, 13, 14, 15)};
    }
    static I iadd(I a, I b) { return {_mm256_add_epi32(a.lo, b.lo), _mm256_add_epi32(a.hi, b.hi)}; }
    static I isub(I a, I b) { return {_mm256_sub_epi32(a.lo, b.lo), _mm256_sub_epi32(a.hi, b.hi)}; }
    static I imul(I a, I b) { return {_mm256_mullo_epi32(a.lo, b.lo), _mm256_mullo_epi32(a.hi, b.hi)}; }
    static I iand(I a, I b) { return {_mm256_and_si256(a.lo, b.lo), _mm256_and_si256(a.hi, b.hi)}; }
    static I ior(I a, I b) { return {_mm256_or_si256(a.lo, b.lo), _mm256_or_si256(a.hi, b.hi)}; }
    static I ixor(I a, I b) { return {_mm256_xor_si256(a.lo, b.lo), _mm256_xor_si256(a.hi, b.hi)}; }
    template <int kBy>
    static I ishl(I a) {
        return {_mm256_slli_epi32(a.lo, kBy), _mm256_slli_epi32(a.hi, kBy)};
    }
    static I ishl_each(I a, I by) { return {_mm256_sllv_epi32(a.lo, by.lo), _mm256_sllv_epi32(a.hi, by.hi)}; }
    template <int kBy>
    static I ishr(I a) {
        return {_mm256_srli_epi32(a.lo, kBy), _mm256_srli_epi32(a.hi, kBy)};
    }
    template <int kBy>
    static I isar(I a) {
        return {_mm256_srai_epi32(a.lo, kBy), _mm256_srai_epi32(a.hi, kBy)};
    }
    static F to_float(I a) { return {_mm256_cvtepi32_ps(a.lo), _mm256_cvtepi32_ps(a.hi)}; }
    static I as_int(F a) { return {_mm256_castps_si256(a.lo), _mm256_castps_si256(a.hi)}; }
    static F as_float(I a) { return {_mm256_castsi256_ps(a.lo), _mm256_castsi256_ps(a.hi)}; }
    static I widen_u8(const void* p) {
        const __m128i x = load128(p);
        return {_mm256_cvtepu8_epi32(x), _mm256_cvtepu8_epi32(_mm_srli_si128(x, 8))};
    }
    static I widen_s8(const void* p) {
        const __m128i x = load128(p);
        return {_mm256_cvtepi8_epi32(x), _mm256_cvtepi8_epi32(_mm_srli_si128(x, 8))};
    }
    /// Lanes within [-128, 127].
    static void store_s8(int8_t* p, I a) {
        const __m256i words = _mm256_permute4x64_epi64(_mm256_packs_epi32(a.lo, a.hi), 0xD8);
        const __m128i bytes = _mm_packs_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
        _mm_storeu_si128(reinterpret_cast<__m128i_u*>(p), bytes);
    }
    static int32_t sum_s8(const int8_t* p) {
        const __m128i raised = _mm_xor_si128(load128(p), _mm_set1_epi8(static_cast<char>(0x80)));  // x + 128
        const __m128i sums = _mm_sad_epu8(raised, _mm_setzero_si128());
        return _mm_cvtsi128_si32(_mm_add_epi32(sums, _mm_shuffle_epi32(sums, 0x4E))) - 16 * 128;
    }
    static F scale_by_power(F a, I n) {
        const I half = isar<1>(n);
        return mul(mul(a, power_of_two(half)), power_of_two(isub(n, half)));
    }

    static B bload(const void* p) {
        const auto* from = static_cast<const __m256i_u*>(p);
        return {_mm256_loadu_si256(from), _mm256_loadu_si256(from + 1)};
    }
    static void bstore(void* p, B a) {
        auto* to = static_cast<__m256i_u*>(p);
        _mm256_storeu_si256(to, a.lo);
        _mm256_storeu_si256(to + 1, a.hi);
    }
    static B bmask(B a, uint8_t mask) {
        const __m256i m = _mm256_set1_epi8(static_cast<char>(mask));
        return {_mm256_and_si256(a.lo, m), _mm256_and_si256(a.hi, m)};
    }
    static B bor(B a, B b) { return ior(a, b); }
    template <int kBy>
    static B bshl(B a) {
        return {_mm256_slli_epi16(a.lo, kBy), _mm256_slli_epi16(a.hi, kBy)};
    }
    template <int kBy>
    static B bshr(B a) {
        return {_mm256_srli_epi16(a.lo, kBy), _mm256_srli_epi16(a.hi, kBy)};
    }

    template <int kBits, size_t kChunks, size_t kPanels, size_t kRows, class Source>
    [[gnu::always_inline]] static void dot_panels(const Source (&source)[kPanels], const int8_t* const (&a)[kRows],
                                                  I (&sum)[kPanels][kRows]) {
        static_assert(kPanels == 1);
        constexpr size_t kRun =
            ExactAdds<kBits>::kCount < static_cast<int>(kChunks) ? ExactAdds<kBits>::kCount : kChunks;
        const __m256i ones = _mm256_set1_epi16(1);
        unroll<kChunks / kRun>([&](auto run) __attribute__((always_inline)) {
            I pairs[kRows];
            unroll<kRun>([&](auto i) __attribute__((always_inline)) {
                constexpr size_t kChunk = run.value * kRun + i.value;
                B w = source[0].template chunk<kChunk>();
                B sign = w;
                if constexpr (kBits == 8) {
                    const __m256i flip = _mm256_set1_epi8(static_cast<char>(0x80));
                    sign = {_mm256_xor_si256(w.lo, flip), _mm256_xor_si256(w.hi, flip)};
                    w = {_mm256_abs_epi8(sign.lo), _mm256_abs_epi8(sign.hi)};
                }
                unroll<kRows>([&](auto n) __attribute__((always_inline)) {
                    int32_t four;
                    __builtin_memcpy(&four, a[n.value] + 4 * kChunk, 4);
                    const __m256i x = _mm256_set1_epi32(four);
                    I product;
                    if constexpr (kBits == 8)
                        product = {_mm256_maddubs_epi16(w.lo, _mm256_sign_epi8(x, sign.lo)),
                                   _mm256_maddubs_epi16(w.hi, _mm256_sign_epi8(x, sign.hi))};
                    else
                        product = {_mm256_maddubs_epi16(w.lo, x), _mm256_maddubs_epi16(w.hi, x)};
                    if constexpr (i.value == 0)
                        pairs[n.value] = product;
                    else
                        pairs[n.value] = {_mm256_add_epi16(pairs[n.value].lo, product.lo),
                                          _mm256_add_epi16(pairs[n.value].hi, product.hi)};
                    // Keeps compilers from gathering all products first, which would spill most of them.
                    asm volatile("" : "+x"(pairs[n.value].lo), "+x"(pairs[n.value].hi));
                });
            });
            unroll<kRows>([&](auto n) __attribute__((always_inline)) {
                sum[0][n.value] = iadd(sum[0][n.value], {_mm256_madd_epi16(pairs[n.value].lo, ones),
                                                         _mm256_madd_epi16(pairs[n.value].hi, ones)});
            });
        });
    }

  private:
    static F power_of_two(I n) { return as_float(ishl<23>(iadd(n, iset1(127)))); }
    static F both(__m256 x) { return {x, x}; }
    static __m128i load128(const void* p) { return _mm_loadu_si128(static_cast<const __m128i_u*>(p)); }
    static const void* next16(const void* p) { return static_cast<const char*>(p) + 16; }
    /// Even (0x88) or odd (0xDD) lanes of x, then of y.
    template <int kMask>
    static __m256 pick(__m256 x, __m256 y) {
        const __m256 mixed = _mm256_shuffle_ps(x, y, kMask);  // x0 x1 y0 y1 by 64 bits
        return _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(mixed), 0xD8));
    }
    static F weave(__m256 even, __m256 odd) {
        const __m256 low = _mm256_unpacklo_ps(even, odd), high = _mm256_unpackhi_ps(even, odd);
        return {_mm256_permute2f128_ps(low, high, 0x20), _mm256_permute2f128_ps(low, high, 0x31)};
    }
};

}  // namespace
}  // namespace cadans::kernels
