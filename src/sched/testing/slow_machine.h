// A machine that tests of plans and predictions stand on.
#pragma once

#include "flow/step_cost.h"

namespace cadans::sched {

/// A billion weights on two cores: 30 ms a word, 6 ms a prompt token.
inline StepCost slow_machine() {
    StepCost cost;
    cost.weights_ps = 30'000'000'000;
    cost.row_ps = 6'000'000'000;
    cost.step_ps = 300'000'000;
    cost.prompt_key_ps = 1'000'000;
    cost.decode_key_ps = 2'000'000;
    cost.logits_ps = 8'000'000'000;
    return cost;
}

}  // namespace cadans::sched
