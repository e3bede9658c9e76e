// Who is told of all that goes into the scheduler and of every plan that comes out.
#pragma once

#include <span>

#include "base/units.h"
#include "flow/event.h"
#include "flow/step.h"
#include "runtime/inbox.h"

namespace cadans::runtime {

/// The loop calls both once a turn, in this order, on its own thread: neither may block.
class Witness {
  public:
    virtual ~Witness() = default;

    /// `result` was committed (null: none), then `commands` are carried out. Borrowed for the call.
    virtual void heard(Nanos now, const StepResult* result, std::span<const Command> commands) = 0;

    /// What the turn led to: the next plan (null: none) and all its events.
    virtual void planned(const StepPlan* plan, std::span<const Event> events) = 0;
};

}  // namespace cadans::runtime
