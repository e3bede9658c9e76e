// Randomness that is a pure function of what it is for: no state, so no order of calls can change it.
#pragma once

#include <cstdint>

namespace cadans {

/// SplitMix64's finaliser: a good 64-bit mix. Source: Steele, Lea & Flood 2014.
constexpr uint64_t mix64(uint64_t x) noexcept {
    x += 0x9E3779B97F4A7C15u;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

/// The key of one draw: the same (seed, choice, absolute token position) always gives the same noise.
constexpr uint64_t noise_key(uint64_t seed, uint32_t choice, uint64_t position) noexcept {
    return mix64(mix64(mix64(seed) ^ choice) ^ position);
}

/// Random bytes from the operating system, for seeds that a client did not give and for keys. Thread-safe.
uint64_t fresh_seed() noexcept;

}  // namespace cadans
