// Which placement to choose, in a sentence that says why.
#pragma once

#include <span>
#include <string>

#include "sim/placement.h"

namespace cadans::sim {

/// A split must serve so much more than sharing to be worth its link: twice what the search is unsure of.
inline constexpr double kUnsure = 1 + 2 * kGrain;

/// Of placements that all have as many boxes, the one to choose: the largest goodput, of near equals (kUnsure) one that
/// shares. Null where none keeps the promise at any rate, or any rate is kept by all.
const Found* choice_of(std::span<const Found> found);

/// That choice in one plain sentence, and why not the best of the other form. `found` is not empty.
std::string advice(std::span<const Found> found, std::span<const Box> boxes, const Terms& terms);

}  // namespace cadans::sim
