// An executor that computes nothing: a step takes as long as the fitted cost says.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "base/units.h"
#include "flow/executor.h"
#include "flow/step_cost.h"

namespace cadans::sim {

/// How far single steps are from what their cost says, because a real machine is not steady: what some took, in 1/1024
/// of that. Empty: exactly what the cost says.
struct Unsteadiness {
    std::vector<uint32_t> reading, writing;  ///< steps with a prompt's rows, and those of single rows only
    uint64_t seed = 1;                       ///< which step gets which
};

/// Draws a token of no meaning wherever one is due, and accepts no draft. The clock is the simulation's and outlives
/// it. Thread rule: one thread. Cost: O(items) a step; a warm step does not allocate.
class ModelledExecutor final : public Executor {
  public:
    /// `between`: what the machine needs from a step's end to the next one's begin.
    ModelledExecutor(const StepCost& cost, const Nanos& now, Nanos between = 0, Unsteadiness unsteady = {})
        : cost_(cost), now_(now), between_(between), unsteady_(std::move(unsteady)) {}

    void submit(const StepPlan& plan) override;
    const StepResult* poll() override;

    bool busy() const noexcept { return busy_; }
    Nanos end() const noexcept { return result_.end; }  ///< of the step in flight

  private:
    Nanos time_of(const StepPlan& plan) const noexcept;

    StepCost cost_;
    const Nanos& now_;
    Nanos between_;
    Unsteadiness unsteady_;
    StepResult result_;
    bool busy_ = false;
};

}  // namespace cadans::sim
