// How often what was guessed for a sequence came: by how much of the text before it had been seen earlier.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

#include "flow/drafter.h"

namespace cadans::sched {

/// Every token that is drawn where one was guessed counts, whether or not a step took the guess in: so a sequence whose
/// guesses do not pay goes on being judged, at no cost.
///
/// A guess in a row of them stands behind a match that is longer by those before it. Chances are of 1024 and follow
/// what comes, at first by a quarter of the way, later by a 16th.
class DraftTally {
  public:
    static constexpr uint32_t kCertain = 1024;

    uint32_t chance(uint32_t match) const noexcept { return chances_[kind_of(match)]; }

    void learn(uint32_t match, bool came) noexcept {
        uint16_t& chance = chances_[kind_of(match)];
        uint16_t& slowness = slowness_[kind_of(match)];
        const uint32_t way = (came ? kCertain - chance : chance) / slowness;
        chance = static_cast<uint16_t>(came ? chance + way : chance - way);
        if (slowness < kSlowest) slowness++;
    }

  private:
    static constexpr uint16_t kSlowest = 16;
    static constexpr uint32_t kKinds = 7, kForced = kKinds - 1;

    /// Matches of 1, 2, 4, 8, 16 tokens and more, and what a form forces.
    static uint32_t kind_of(uint32_t match) noexcept {
        if (match >= kForcedMatch) return kForced;
        return std::min<uint32_t>(static_cast<uint32_t>(std::bit_width(match)), kForced - 1);
    }

    /// Before anything is known: a short match is most often by chance, one of a sentence's length is a repetition.
    std::array<uint16_t, kKinds> chances_ = {0, 96, 192, 448, 768, 896, 896};
    std::array<uint16_t, kKinds> slowness_ = {4, 4, 4, 4, 4, 4, 4};
};

/// How often a draft model's guesses came. Only guesses that a step took in are judged, for others were never made.
class ModelTally {
  public:
    static constexpr uint32_t kCertain = DraftTally::kCertain;
    static constexpr uint32_t kAtFirst = 3 * kCertain / 4;
    static constexpr uint32_t kForgetsWithin = 64;  ///< steps without a guess: most of a bad record

    ModelTally() = default;
    /// Begins where others have come to, and follows its own guesses as fast.
    explicit ModelTally(uint32_t chance) : chance_(static_cast<uint16_t>(chance)) {}

    uint32_t chance() const noexcept { return chance_; }

    /// At first by half of the way, later by a 16th.
    void learn(bool came) noexcept {
        const uint32_t way = (came ? kCertain - chance_ : chance_) / slowness_;
        chance_ = static_cast<uint16_t>(came ? chance_ + way : chance_ - way);
        if (slowness_ < kSlowest) slowness_++;
    }

    /// Nothing was guessed: a little of the way up to `chance`, so that it is tried again some day.
    void forget(uint32_t chance, uint32_t part) noexcept {
        if (chance > chance_) chance_ = static_cast<uint16_t>(chance_ + (chance - chance_ + part - 1) / part);
    }

  private:
    static constexpr uint16_t kSlowest = 16;
    uint16_t chance_ = kAtFirst;
    uint16_t slowness_ = 2;
};

}  // namespace cadans::sched
