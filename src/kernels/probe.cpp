// Main idea: independent chains of the dot instruction in registers, enough of them to hide its latency.
#include "kernels/probe.h"

#include <immintrin.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/clock.h"

namespace cadans::kernels {
namespace {

constexpr int kRounds = 200'000;
constexpr int kRuns = 7;
constexpr int kChains = 8;         // of a scalar burst
constexpr int kVectorChains = 12;  // two a cycle, five cycles each, and some to spare

/// Keeps a value alive without storing it anywhere.
template <class T>
void keep(T& value) {
    asm volatile("" : "+m"(value));
}

// Loops of one instruction are whole in assembler: a compiler that may see single steps of them stores every sum.

__attribute__((target("avx512f,avx512vnni"))) double burst_avx512() {
    const __m512i codes = _mm512_set1_epi8(3), values = _mm512_set1_epi8(-5);
    int rounds = kRounds;
    asm volatile(
        ".irp sum,0,1,2,3,4,5,6,7,8,9,10,11\n\t"
        "vpxor %%xmm\\sum, %%xmm\\sum, %%xmm\\sum\n\t"
        ".endr\n"
        "1:\n\t"
        ".irp sum,0,1,2,3,4,5,6,7,8,9,10,11\n\t"
        "vpdpbusd %2, %1, %%zmm\\sum\n\t"
        ".endr\n\t"
        "dec %0\n\t"
        "jnz 1b"
        : "+r"(rounds)
        : "v"(codes), "v"(values)
        : "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11");
    return 2.0 * 64 * kVectorChains * kRounds;
}

__attribute__((target("avx2"))) double burst_avx2() {
    __m256i sums[2] = {_mm256_setzero_si256(), _mm256_setzero_si256()};
    __m256i codes = _mm256_set1_epi8(3), values = _mm256_set1_epi8(-5);
    const __m256i ones = _mm256_set1_epi16(1);
    for (int i = 0; i < kRounds; i++) {
#pragma GCC unroll 2
        for (__m256i& sum : sums) {
            asm volatile("" : "+x"(codes), "+x"(values));
            __m256i words = _mm256_maddubs_epi16(codes, values);
#pragma GCC unroll 8
            for (int chunk = 1; chunk < 8; chunk++) {
                asm volatile("" : "+x"(values));
                words = _mm256_add_epi16(words, _mm256_maddubs_epi16(codes, values));
            }
            sum = _mm256_add_epi32(sum, _mm256_madd_epi16(words, ones));
        }
    }
    for (__m256i& sum : sums) keep(sum);
    return 2.0 * 32 * 8 * 2 * kRounds;
}

double burst_scalar() {
    int32_t sums[kChains] = {};
    int32_t code = 3, value = -5;
    for (int i = 0; i < kRounds; i++) {
        asm volatile("" : "+r"(code), "+r"(value));
#pragma GCC unroll 8
        for (int32_t& sum : sums) sum += code * value;
    }
    for (int32_t& sum : sums) keep(sum);
    return 2.0 * kChains * kRounds;
}

__attribute__((target("avx512f"))) double burst_fma_avx512() {
    const __m512 a = _mm512_set1_ps(0.5f), b = _mm512_set1_ps(0.25f);
    int rounds = kRounds;
    asm volatile(
        ".irp sum,0,1,2,3,4,5,6,7,8,9,10,11\n\t"
        "vpxor %%xmm\\sum, %%xmm\\sum, %%xmm\\sum\n\t"
        ".endr\n"
        "1:\n\t"
        ".irp sum,0,1,2,3,4,5,6,7,8,9,10,11\n\t"
        "vfmadd231ps %2, %1, %%zmm\\sum\n\t"
        ".endr\n\t"
        "dec %0\n\t"
        "jnz 1b"
        : "+r"(rounds)
        : "v"(a), "v"(b)
        : "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11");
    return 2.0 * 16 * kVectorChains * kRounds;
}

__attribute__((target("avx2,fma"))) double burst_fma_avx2() {
    const __m256 a = _mm256_set1_ps(0.5f), b = _mm256_set1_ps(0.25f);
    int rounds = kRounds;
    asm volatile(
        ".irp sum,0,1,2,3,4,5,6,7,8,9,10,11\n\t"
        "vpxor %%xmm\\sum, %%xmm\\sum, %%xmm\\sum\n\t"
        ".endr\n"
        "1:\n\t"
        ".irp sum,0,1,2,3,4,5,6,7,8,9,10,11\n\t"
        "vfmadd231ps %2, %1, %%ymm\\sum\n\t"
        ".endr\n\t"
        "dec %0\n\t"
        "jnz 1b"
        : "+r"(rounds)
        : "x"(a), "x"(b)
        : "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11");
    return 2.0 * 8 * kVectorChains * kRounds;
}

double burst_fma_scalar() {
    float sums[kChains] = {};
    float a = 0.5f, b = 0.25f;
    for (int i = 0; i < kRounds; i++) {
#pragma GCC unroll 8
        for (float& sum : sums) {
            asm volatile("" : "+x"(a), "+x"(b));
            sum += a * b;
        }
    }
    for (float& sum : sums) keep(sum);
    return 2.0 * kChains * kRounds;
}

/// Operations a second of all threads: the median of a few runs.
double measure(double (*burst)(), ThreadPool& pool) {
    std::vector<double> operations(pool.threads()), rates;
    for (int run = 0; run < kRuns; run++) {
        const Nanos begin = steady_now();
        pool.run([&](uint32_t thread, uint32_t) { operations[thread] = burst(); });
        double total = 0;
        for (const double each : operations) total += each;
        rates.push_back(total * 1e9 / static_cast<double>(steady_now() - begin));
    }
    std::ranges::sort(rates);
    return rates[rates.size() / 2];
}

}  // namespace

double measure_dot_peak(const KernelTable& table, ThreadPool& pool) {
    return measure(table.isa == Isa::avx512 ? burst_avx512 : table.isa == Isa::avx2 ? burst_avx2 : burst_scalar, pool);
}

double measure_fma_peak(const KernelTable& table, ThreadPool& pool) {
    return measure(table.isa == Isa::avx512 ? burst_fma_avx512
                   : table.isa == Isa::avx2 ? burst_fma_avx2
                                            : burst_fma_scalar,
                   pool);
}

}  // namespace cadans::kernels
