// Who carries out a step: the engine, a model of it in the simulator, or a test's fake.
#pragma once

#include "flow/step.h"

namespace cadans {

/// One step at a time: submit, then poll until its result appears. Thread rule: one thread.
class Executor {
  public:
    virtual ~Executor() = default;

    /// The plan and everything it borrows stay unchanged until poll() has returned its result.
    virtual void submit(const StepPlan& plan) = 0;

    /// The finished step, once; null while none is. Valid until the next submit().
    virtual const StepResult* poll() = 0;
};

}  // namespace cadans
