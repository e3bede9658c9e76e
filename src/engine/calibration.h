// A few seconds of steps of chosen shapes, so that afterwards the time of any step can be predicted.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/units.h"
#include "engine/cost_fit.h"
#include "flow/executor.h"
#include "flow/model_facts.h"

namespace cadans::engine {

/// What is to be measured, and with what.
struct CalibrationSetup {
    ModelFacts facts;         ///< of the model; its id is the executor's
    uint32_t pages = 0;       ///< page ids [0, pages) of every group may be used, and hold numbers
    uint32_t max_rows = 256;  ///< of one step
    uint32_t max_items = 64;
    Nanos budget = 5 * kNanosPerSecond;  ///< time to spend, about; shapes that would take too much of it are left out
};

/// Told how far it is; returning false stops.
using OnCalibration = std::function<bool(uint64_t done, uint64_t total)>;

/// Drives the executor, which nobody else uses meanwhile, and fits StepCost to what it took: prompts of several
/// sizes, single rows side by side, both behind long contexts, with and without logits. Each shape is run up to three
/// times and its median counts. Stopped early it fits what it has.
CostFit calibrate(Executor& executor, const CalibrationSetup& setup, const OnCalibration& progress);

}  // namespace cadans::engine
