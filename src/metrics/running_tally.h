// Where the time of a request went so far, kept up step by step while it runs.
#pragma once

#include <cstdint>

#include "base/units.h"
#include "metrics/receipt.h"
#include "metrics/request_record.h"

namespace cadans::metrics {

/// The parts of a request's time so far, coarser than a receipt. They sum to what has been told of it.
struct Spent {
    Nanos load = 0, queue = 0;
    Nanos own_prefill = 0, own_decode = 0;        ///< recomputing and unused drafts are in them
    Nanos others_prefill = 0, others_decode = 0;  ///< steps that computed others, from its own first step on
    Nanos preempted = 0;
    Nanos other = 0;  ///< reading and tokenizing the request, text, a slow client, between steps

    Nanos total() const noexcept {
        return load + queue + own_prefill + own_decode + others_prefill + others_decode + preempted + other;
    }
};

/// Tells of a request what its receipt will tell when it is done, as far as it is known: up to the end of the last
/// step. Parts only grow. Thread rule: one thread. Cost: a few divisions a step, no allocation.
class RunningTally {
  public:
    enum class State : uint8_t { arriving, loading, queued, running, preempted, writing };

    explicit RunningTally(Nanos accepted) : until_(accepted) {}

    /// From `now` on it is in that state; what was before is due to the state before.
    void enter(State state, Nanos now) {
        settle(now);
        state_ = state;
    }

    /// A step that has ended, with or without rows of it; in order. The first with rows of it ends its queueing.
    void step(const StepPart& part, const RowCost& cost = cost_by_rows);

    /// Time that passed without a step is due to its state.
    void settle(Nanos now);

    State state() const noexcept { return state_; }
    Nanos until() const noexcept { return until_; }  ///< of what spent() tells
    const Spent& spent() const noexcept { return spent_; }

  private:
    State state_ = State::arriving;
    Nanos until_;
    Spent spent_;
};

}  // namespace cadans::metrics
