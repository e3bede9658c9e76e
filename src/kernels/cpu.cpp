#include "kernels/cpu.h"

#include <cpuid.h>

#include <cstdint>

namespace cadans::kernels {

namespace {

/// Which register states the operating system saves (XCR0).
uint64_t saved_states() noexcept {
    uint32_t low = 0, high = 0;
    asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return static_cast<uint64_t>(high) << 32 | low;
}

constexpr bool all(uint64_t value, uint64_t bits) noexcept { return (value & bits) == bits; }
constexpr uint64_t bit(unsigned n) noexcept { return uint64_t{1} << n; }

}  // namespace

CpuFeatures cpu_features() noexcept {
    CpuFeatures features;
    unsigned a = 0, b = 0, c = 0, d = 0;
    if (__get_cpuid(1, &a, &b, &c, &d) == 0) return features;
    constexpr unsigned kFma = 12, kXsave = 27, kAvx = 28, kF16c = 29;
    if (!all(c, bit(kFma) | bit(kXsave) | bit(kAvx) | bit(kF16c))) return features;
    const uint64_t states = saved_states();
    if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return features;
    constexpr unsigned kAvx2 = 5, kAvx512F = 16, kAvx512Dq = 17, kAvx512Bw = 30, kAvx512Vl = 31, kVnni = 11;
    features.avx2 = all(states, 0x6) && all(b, bit(kAvx2));
    features.avx512_vnni = all(states, 0xE6) &&
                           all(b, bit(kAvx512F) | bit(kAvx512Dq) | bit(kAvx512Bw) | bit(kAvx512Vl)) &&
                           all(c, bit(kVnni));
    return features;
}

}  // namespace cadans::kernels
