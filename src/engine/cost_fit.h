// From measured steps to the coefficients of StepCost: a fit in floating point so that sched needs none.
#pragma once

#include <span>
#include <vector>

#include "base/units.h"
#include "flow/step_cost.h"

namespace cadans::engine {

struct CostFit {
    StepCost cost;
    double median_error = 0;  ///< of |predicted - measured| / measured over the samples
    double p90_error = 0;
};

/// The non-negative coefficients with the least absolute relative error, by least squares that are weighed anew a few
/// times. Where steps turn from waiting for weights to
/// computing is found by trying each number of rows; which coefficients are zero, by trying all sets of them.
/// `window` holds window_tokens and window_share, with which the samples' shapes were made; they are kept.
/// At least one sample with rows and time. Cost: milliseconds. Source: Lawson & Hanson 1974, chapter 23;
/// Holland & Welsch 1977 for the weights.
CostFit fit_step_cost(std::span<const StepSample> samples, const StepCost& window);

}  // namespace cadans::engine
