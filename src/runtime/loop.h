// The machine on one screen: commit what is done, hear who asks, plan what comes next.
#pragma once

#include <vector>

#include "base/units.h"
#include "flow/executor.h"
#include "runtime/fanout.h"
#include "runtime/inbox.h"
#include "runtime/witness.h"
#include "sched/scheduler.h"

namespace cadans::runtime {

/// One verb. It neither sleeps nor reads a clock: a driver does that for the server, an event heap for the
/// simulator. The borrowed parts outlive the loop; a witness is told of every turn. Thread rule: one thread. Cost: a
/// warm turn does not allocate.
class Loop {
  public:
    Loop(Inbox& inbox, sched::Scheduler& scheduler, Executor& executor, Fanout& fanout, Witness* witness = nullptr);

    struct Next {
        bool now = false;  ///< a step is in flight: turn again at once
        Nanos wakeup = 0;  ///< else turn at this time, or when a command comes (sched::kNever: only then)
    };

    /// Poll, commit, hear the inbox, plan, publish, submit. Events are out before the next step begins.
    Next turn(Nanos now);

  private:
    void hear(Command& command, Nanos now);

    Inbox& inbox_;
    sched::Scheduler& scheduler_;
    Executor& executor_;
    Fanout& fanout_;
    Witness* witness_;
    std::vector<Command> commands_;
    std::vector<Event> events_;
    Occupancy occupancy_;
    Nanos forecast_at_ = 0;
};

}  // namespace cadans::runtime
