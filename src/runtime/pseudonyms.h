// Names for tokens that tell who began alike and nothing else.
#pragma once

#include <array>
#include <cstdint>

#include "base/ids.h"

namespace cadans::runtime {

/// A token's pseudonym is a keyed hash of it and of all tokens before it, cut to 30 bits: two sequences have the same
/// pseudonyms exactly as far as their tokens are the same (but for one chance in 2^30), which is what a prefix cache
/// looks at. The key is drawn at the start and never written, so nobody can go back to the tokens, and the same word
/// at two places has two names. Source: SipHash-2-4 (Aumasson and Bernstein 2012).
///
/// Thread rule: immutable. Cost: some 20 ns a token.
class Pseudonyms {
  public:
    explicit Pseudonyms(std::array<uint64_t, 2> key) : key_(key) {}

    /// What stands for a sequence before its first token.
    static constexpr uint64_t kStart = 0;

    /// Moves `history` on by one token.
    uint64_t next(uint64_t history, TokenId token) const noexcept { return hash(history, uint64_t{index(token)} + 1); }

    /// The name of the token that led to `history`: 1 to 2^30 - 1.
    static constexpr uint32_t name(uint64_t history) noexcept {
        const uint32_t bits = static_cast<uint32_t>(history >> 34);
        return bits == 0 ? 1 : bits;
    }

    /// A number of somebody (a scope) as another number.
    uint64_t of(uint64_t scope) const noexcept { return hash(~uint64_t{0}, scope); }

  private:
    uint64_t hash(uint64_t first, uint64_t second) const noexcept;

    std::array<uint64_t, 2> key_;
};

}  // namespace cadans::runtime
