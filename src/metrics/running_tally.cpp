#include "metrics/running_tally.h"

#include <algorithm>

namespace cadans::metrics {

void RunningTally::settle(Nanos now) {
    if (now <= until_) return;
    const Nanos span = now - until_;
    until_ = now;
    switch (state_) {
        case State::loading:
            spent_.load += span;
            break;
        case State::queued:
            spent_.queue += span;
            break;
        case State::preempted:
            spent_.preempted += span;
            break;
        default:
            spent_.other += span;
    }
}

void RunningTally::step(const StepPart& part, const RowCost& cost) {
    const bool mine = part.mine != decltype(part.mine){};
    if (!mine && state_ != State::running) return settle(part.end);
    settle(part.begin);
    if (mine) state_ = State::running;
    if (part.end <= until_) return;
    Receipt receipt;
    divide_step(part, part.end - until_, cost, receipt);
    until_ = part.end;
    const bool reads = part.mine[static_cast<uint32_t>(Phase::prefill)] > 0;
    (reads ? spent_.own_prefill : spent_.own_decode) += receipt[Cause::recompute];
    spent_.own_prefill += receipt[Cause::own_prefill];
    spent_.own_decode += receipt[Cause::own_decode] + receipt[Cause::speculation_waste];
    spent_.others_prefill += receipt[Cause::others_prefill];
    spent_.others_decode += receipt[Cause::others_decode];
}

}  // namespace cadans::metrics
