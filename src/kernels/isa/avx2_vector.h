// Sixteen lanes as two 256-bit registers, dot products by 16-bit sums that stay exact.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "kernels/generic/unroll.h"

namespace cadans::kernels {
namespace {

/// How many results of vpmaddubsw (pairs of products) a 16-bit sum holds exactly, activations being within +-127. Sums
/// that start from zero point * -(their activations) are sums of (code - zero), about half as large; what lies between
/// may wrap.
constexpr int exact_adds(int bits, bool centred) {
    const int largest = centred ? 1 << (bits - 1) : (1 << bits) - 1;
    return 32767 / (2 * 127 * largest);
}
static_assert(exact_adds(4, false) >= 8 && exact_adds(5, false) >= 4 && exact_adds(5, true) >= 8);  // a group of 32
static_assert(exact_adds(6, true) >= 4);                                                            // a half group
static_assert(exact_adds(8, true) >= 1);  // magnitudes of signed codes

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
    static constexpr bool kSignedBytes = true;  ///< 8-bit codes enter the dot with 128 taken away
    /// Decides how many 16-bit sums are exact; 3 bits, four of which make a half group, run as 6 do.
    static constexpr int dot_bits(int bits) { return bits == 3 ? 6 : bits; }
    static constexpr size_t kTilePanels = 1, kTileRows = 4, kDirectRows = 4;
    static constexpr size_t kPassRows = 32;
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
    /// -(sum of the codes with i % 4 below 2), then of the others, of 16 codes.
    static void negated_pair_sums(const int8_t* p, int16_t* out) {
        const __m128i pairs = _mm_maddubs_epi16(_mm_set1_epi8(1), load128(p));
        const __m128i four = _mm_add_epi16(pairs, _mm_shuffle_epi32(pairs, 0x4E));
        const __m128i two = _mm_add_epi16(four, _mm_shuffle_epi32(four, 0xB1));
        const int32_t both = _mm_cvtsi128_si32(_mm_sub_epi16(_mm_setzero_si128(), two));
        __builtin_memcpy(out, &both, sizeof both);
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

    static B blookup(const uint8_t* table, B codes) {
        const __m256i t = _mm256_broadcastsi128_si256(load128(table));
        return {_mm256_shuffle_epi8(t, codes.lo), _mm256_shuffle_epi8(t, codes.hi)};
    }

    static I isub_pairs(I a, I b) { return {_mm256_sub_epi16(a.lo, b.lo), _mm256_sub_epi16(a.hi, b.hi)}; }
    /// 8-bit codes become signed.
    template <int kBits>
    static B expanded(B codes) {
        if constexpr (kBits == 8) return ixor(codes, iset1(static_cast<int32_t>(0x80808080u)));
        return codes;
    }

    template <class Shape, size_t kChunks, size_t kPanels, size_t kRows, class Source, class Pairs>
    [[gnu::always_inline]] static void dot(const Source (&source)[kPanels], const int8_t* const (&a)[kRows],
                                           const Pairs& pairs, I zero, I (&sum)[kPanels][kRows]) {
        static_assert(kPanels == 1);
        if constexpr (Shape::kBits == 8)
            dot_signed<kChunks>(source[0], a, sum[0]);
        else
            dot_unsigned<Shape, kChunks>(source[0], a, pairs, zero, sum[0]);
    }

  private:
    [[gnu::always_inline]] static __m256i broadcast(const int8_t* four) {
        int32_t word;
        __builtin_memcpy(&word, four, sizeof word);
        return _mm256_set1_epi32(word);
    }
    /// Keeps compilers from gathering all products first, which would spill most of them.
    [[gnu::always_inline]] static void settle(I& a) { asm volatile("" : "+x"(a.lo), "+x"(a.hi)); }

    /// Codes below 2^6, summed in 16 bits as far as that is exact. Where plain codes would not fit, and registers are
    /// wanted for unpacking, they are summed as if they had a zero point; what that took away is added in 32 bits.
    template <class Shape, size_t kChunks, size_t kRows, class Source, class Pairs>
    [[gnu::always_inline]] static void dot_unsigned(const Source& source, const int8_t* const (&a)[kRows],
                                                    const Pairs& pairs, I zero, I (&sum)[kRows]) {
        constexpr bool kFits = exact_adds(Shape::kBits, false) >= static_cast<int>(kChunks);
        constexpr bool kBorrowsZero = !Shape::kZero && !kFits && !Source::kExpanded;
        constexpr bool kCentred = Shape::kZero || kBorrowsZero;
        constexpr size_t kExact = exact_adds(Shape::kBits, kCentred), kRun = kExact < kChunks ? kExact : kChunks;
        static_assert(kRun == kChunks || !kCentred);
        const __m256i ones = _mm256_set1_epi16(1);
        if constexpr (kBorrowsZero) zero = iset1((1 << (Shape::kBits - 1)) * 0x00010001);
        unroll<kChunks / kRun>([&](auto run) __attribute__((always_inline)) {
            I part[kRows];
            if constexpr (kCentred)
                unroll<kRows>([&](auto n) __attribute__((always_inline)) {
                    const __m256i start = _mm256_mullo_epi16(pairs(n.value).lo, zero.lo);
                    part[n.value] = {start, start};
                });
            unroll<kRun>([&](auto i) __attribute__((always_inline)) {
                constexpr size_t kChunk = run.value * kRun + i.value;
                const B w = source.template chunk<kChunk>();
                unroll<kRows>([&](auto n) __attribute__((always_inline)) {
                    const __m256i x = broadcast(a[n.value] + 4 * kChunk);
                    const I product = {_mm256_maddubs_epi16(w.lo, x), _mm256_maddubs_epi16(w.hi, x)};
                    I& to = part[n.value];
                    if constexpr (i.value == 0 && !kCentred)
                        to = product;
                    else
                        to = {_mm256_add_epi16(to.lo, product.lo), _mm256_add_epi16(to.hi, product.hi)};
                    settle(to);
                });
            });
            unroll<kRows>([&](auto n) __attribute__((always_inline)) {
                const I whole = {_mm256_madd_epi16(part[n.value].lo, ones), _mm256_madd_epi16(part[n.value].hi, ones)};
                sum[n.value] = run.value == 0 ? whole : iadd(sum[n.value], whole);
            });
        });
        if constexpr (kBorrowsZero)
            unroll<kRows>([&](auto n) __attribute__((always_inline)) {
                const __m256i taken = _mm256_madd_epi16(pairs(n.value).lo, zero.lo);
                sum[n.value] = isub(sum[n.value], {taken, taken});
            });
    }

    /// Signed codes: their sign moves to the activation, their magnitude is unsigned.
    template <size_t kChunks, size_t kRows, class Source>
    [[gnu::always_inline]] static void dot_signed(const Source& source, const int8_t* const (&a)[kRows],
                                                  I (&sum)[kRows]) {
        const __m256i ones = _mm256_set1_epi16(1);
        unroll<kChunks>([&](auto c) __attribute__((always_inline)) {
            B w = source.template chunk<c.value>();
            if constexpr (!Source::kSigned) w = expanded<8>(w);
            const B magnitude = {_mm256_abs_epi8(w.lo), _mm256_abs_epi8(w.hi)};
            const auto four = [&](__m256i code, __m256i size, __m256i x) __attribute__((always_inline)) {
                return _mm256_madd_epi16(_mm256_maddubs_epi16(size, _mm256_sign_epi8(x, code)), ones);
            };
            unroll<kRows>([&](auto n) __attribute__((always_inline)) {
                const __m256i x = broadcast(a[n.value] + 4 * c.value);
                const I product = {four(w.lo, magnitude.lo, x), four(w.hi, magnitude.hi, x)};
                sum[n.value] = c.value == 0 ? product : iadd(sum[n.value], product);
                settle(sum[n.value]);
            });
        });
    }

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
