// What will be needed soon is asked from memory while something else is computed.
#pragma once

#include <cstddef>

namespace cadans::kernels {

inline constexpr size_t kLine = 64;  ///< bytes of a line of the caches

/// Lines that hold [from, from + bytes) are on their way to the second-level cache. Any address may be named.
[[gnu::always_inline]] inline void fetch_ahead(const std::byte* from, size_t bytes) {
    for (size_t i = 0; i < bytes; i += kLine) __builtin_prefetch(from + i, 0, 2);
}

}  // namespace cadans::kernels
