// Which kind of work a sequence is due: derived from three counts, never stored.
#pragma once

#include <cstdint>

namespace cadans {

enum class Phase : uint8_t {
    prefill,  ///< more than one known token is still to be computed
    decode,   ///< exactly one is
    verify,   ///< drafts ride behind it
};

inline constexpr uint32_t kPhases = 3;

/// `known` tokens in all (prompt and accepted), of them `computed`; `drafted` guesses behind them.
constexpr Phase phase_of(uint32_t known, uint32_t computed, uint32_t drafted) noexcept {
    if (known - computed > 1) return Phase::prefill;
    return drafted > 0 ? Phase::verify : Phase::decode;
}

constexpr const char* name(Phase phase) noexcept {
    constexpr const char* kNames[kPhases] = {"prefill", "decode", "verify"};
    return kNames[static_cast<uint8_t>(phase)];
}

}  // namespace cadans
