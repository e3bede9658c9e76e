// How many guesses a step takes in: as many as are predicted to bring more tokens in a second, and no more.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"
#include "base/units.h"
#include "flow/event.h"
#include "flow/step_cost.h"
#include "sched/draft_tally.h"
#include "sched/step_curve.h"

namespace cadans::sched {

/// A sequence that draws a token in this step, with what was guessed to follow its last one.
struct DraftCandidate {
    static constexpr uint64_t kCertainOfAll = uint64_t{DraftTally::kCertain} * DraftTally::kCertain;

    const DraftTally* tally = nullptr;
    ModelId model{};
    uint32_t first = 0;    ///< position of its one row
    uint32_t offered = 0;  ///< tokens guessed
    uint32_t match = 0;    ///< Guess::match
    const ModelTally* modelled =
        nullptr;                      ///< not null: a draft model would guess, and `tally` and `match` do not count
    uint32_t due = 0;                 ///< known tokens that it computes before its first guess, at least 1
    uint64_t chance = kCertainOfAll;  ///< scratch: that all that are taken come
    uint32_t taken = 0;               ///< the outcome: of `offered`, the first so many
    DraftHold hold = DraftHold::none;
};

/// The step as it is without drafts.
struct DraftStep {
    std::span<const StepCost> costs;    ///< by ModelId; of one that has none, every row is taken to cost nothing
    std::span<const StepCurve> curves;  ///< as many
    std::span<StepShape> shapes;        ///< as many; changed on the way and left as the outcome is
    uint32_t tokens = 0;                ///< that it brings, at least as many as there are candidates
    uint32_t rows_left = 0;             ///< drafts that it has room for
    Micros within = 0;                  ///< with drafts it must not take longer
    const StepCost* drafter = nullptr;  ///< of the draft model; null where no candidate has one
    std::span<StepShape> passes = {};   ///< its part of the step, as `shapes`: kMostDrafts of them
};

/// Chooses `taken` and `hold` of every candidate. Guesses come in by their chance to be accepted, likeliest first; of
/// all steps on this way the one with the most expected tokens in its predicted time is chosen, if it is better than
/// the step without drafts by a 32nd, for neither is exactly so. Where nothing is predicted, those come in that are
/// likelier than not.
///
/// order  scratch
/// Cost: a prediction for each draft, each a pass over the candidates; `order` may grow to rows_left.
/// Source: goodput as the measure of a draft's length: Liu et al. 2024 (SmartSpec).
void choose_drafts(std::span<DraftCandidate> candidates, const DraftStep& step, std::vector<uint32_t>& order);

}  // namespace cadans::sched
