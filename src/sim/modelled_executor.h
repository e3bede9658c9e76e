// An executor that computes nothing: a step takes as long as the fitted cost says.
#pragma once

#include "base/units.h"
#include "flow/executor.h"
#include "flow/step_cost.h"

namespace cadans::sim {

/// Draws a token of no meaning wherever one is due. The clock is the simulation's and outlives it.
/// Thread rule: one thread. Cost: O(items) a step; a warm step does not allocate.
class ModelledExecutor final : public Executor {
  public:
    /// `between`: what the machine needs from a step's end to the next one's begin.
    ModelledExecutor(const StepCost& cost, const Nanos& now, Nanos between = 0)
        : cost_(cost), now_(now), between_(between) {}

    void submit(const StepPlan& plan) override;
    const StepResult* poll() override;

    bool busy() const noexcept { return busy_; }
    Nanos end() const noexcept { return result_.end; }  ///< of the step in flight

  private:
    StepCost cost_;
    const Nanos& now_;
    Nanos between_;
    StepResult result_;
    bool busy_ = false;
};

}  // namespace cadans::sim
