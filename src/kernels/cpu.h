// What the processor and its operating system offer, as far as kernels care.
#pragma once

namespace cadans::kernels {

struct CpuFeatures {
    bool avx2 = false;         ///< AVX2, FMA, F16C, and saved 256-bit registers
    bool avx512_vnni = false;  ///< AVX-512 F, BW, DQ, VL, VNNI, and saved 512-bit registers
};

/// Asks CPUID and XGETBV; cheap enough to ask each time. Thread-safe.
CpuFeatures cpu_features() noexcept;

}  // namespace cadans::kernels
