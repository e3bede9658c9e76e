// What differs between processors and compilers: the one file where #if is allowed.
#pragma once

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace cadans {

/// A hint to the processor that this thread only waits.
inline void cpu_relax() noexcept {
#if defined(__x86_64__)
    _mm_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

/// Round to nearest even, denormals kept: the mode in which every logit is computed. Per thread.
inline void set_float_mode() noexcept {
#if defined(__x86_64__)
    _mm_setcsr(0x1F80);  // all exceptions masked, nearest even, no flush to zero, no denormals-are-zero
#elif defined(__aarch64__)
    unsigned long mode = 0;
    asm volatile("msr fpcr, %0" : : "r"(mode));
#endif
}

}  // namespace cadans
