// Loops that the compiler must unroll, so that arrays of vectors live in registers.
#pragma once

#include <cstddef>
#include <utility>

namespace cadans::kernels {

template <size_t kIndex>
struct Constant {
    static constexpr size_t value = kIndex;
};

/// f(Constant<0>{}), f(Constant<1>{}), ... Internal where F is: closures of units whose vector type is internal.
template <size_t kCount, class F>
[[gnu::always_inline]] inline void unroll(const F& f) {
    [&]<size_t... kIndex>(std::index_sequence<kIndex...>) __attribute__((always_inline)) {
        (f(Constant<kIndex>{}), ...);
    }
    (std::make_index_sequence<kCount>{});
}

/// Calls f(Constant<n>{}) for the n in 1 .. kMost that equals `n`.
template <size_t kMost, class F>
[[gnu::always_inline]] inline void with_count(size_t n, const F& f) {
    unroll<kMost>([&](auto i) __attribute__((always_inline)) {
        if (n == i.value + 1) f(Constant<i.value + 1>{});
    });
}

/// Calls f(first, Constant<count>{}) for parts of [0, n): as few as there can be of at most kMost, as even as they can
/// be. kLeast is the smallest that can come up; parts from there on are compiled.
template <size_t kLeast, size_t kMost, class F>
[[gnu::always_inline]] inline void in_even_parts(size_t n, const F& f) {
    size_t done = 0;
    for (size_t parts = (n + kMost - 1) / kMost; parts > 0; --parts) {
        const size_t count = (n - done + parts - 1) / parts;
        unroll<kMost - kLeast + 1>([&](auto i) __attribute__((always_inline)) {
            if (count == i.value + kLeast) f(done, Constant<i.value + kLeast>{});
        });
        done += count;
    }
}

/// The smallest part into which in_even_parts cuts any n >= `from`.
constexpr size_t smallest_share(size_t from, size_t most) {
    size_t smallest = most;
    for (size_t n = from; n < from + most * most; ++n) {
        const size_t share = n / ((n + most - 1) / most);
        if (share < smallest) smallest = share;
    }
    return smallest;
}

}  // namespace cadans::kernels
