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
constexpr int kChains = 8;  // of the scalar burst

/// Keeps a value alive without storing it anywhere.
template <class T>
void keep(T& value) {
    asm volatile("" : "+m"(value));
}

__attribute__((target("avx512f,avx512vnni"))) double burst_avx512() {
    constexpr int kSums = 16;  // two a cycle, five cycles each, and some to spare
    __m512i sums[kSums];
    for (__m512i& sum : sums) sum = _mm512_setzero_si512();
    const __m512i codes = _mm512_set1_epi8(3), values = _mm512_set1_epi8(-5);
    for (int i = 0; i < kRounds; i++) {
#pragma GCC unroll 16
        for (__m512i& sum : sums) asm volatile("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(codes), "v"(values));
    }
    for (__m512i& sum : sums) keep(sum);
    return 2.0 * 64 * kSums * kRounds;
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

}  // namespace

double measure_dot_peak(const KernelTable& table, ThreadPool& pool) {
    double (*const burst)() = table.isa == Isa::avx512 ? burst_avx512
                              : table.isa == Isa::avx2 ? burst_avx2
                                                       : burst_scalar;
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

}  // namespace cadans::kernels
