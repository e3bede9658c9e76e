// Prompt lookup: what followed the last place that looks like the present end.
#pragma once

#include <cstdint>
#include <span>

#include "base/ids.h"
#include "flow/drafter.h"

namespace cadans::draft {

inline constexpr uint32_t kLookedBack = 1 << 15;  ///< tokens before the end that are looked through
inline constexpr uint32_t kLongestMatch = 32;     ///< of tokens; a longer one is no better
inline constexpr uint32_t kMostComparisons = 1 << 16;

/// Copies to `out` what followed the latest of the longest endings of `known` that stand earlier in it. Nothing to
/// keep, nothing to build.
///
/// Cost: a pass over the last kLookedBack tokens, and kMostComparisons at most.
/// Source: Saxena 2023, prompt lookup decoding; Yang et al. 2023 (LLMA).
Guess look_up(std::span<const TokenId> known, std::span<TokenId> out) noexcept;

}  // namespace cadans::draft
