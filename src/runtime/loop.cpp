#include "runtime/loop.h"

#include <algorithm>

namespace cadans::runtime {
namespace {

constexpr Nanos kForecastEvery = 100 * kNanosPerMilli;

}  // namespace

Loop::Loop(Inbox& inbox, sched::Scheduler& scheduler, Executor& executor, Fanout& fanout, Witness* witness)
    : inbox_(inbox), scheduler_(scheduler), executor_(executor), fanout_(fanout), witness_(witness) {
    events_.reserve(size_t{8} * scheduler.house().limits.max_running);
}

Loop::Next Loop::turn(Nanos now) {
    const StepResult* result = scheduler_.step_in_flight() ? executor_.poll() : nullptr;
    if (result != nullptr) scheduler_.commit(*result, now, events_);
    inbox_.take(commands_);
    if (witness_ != nullptr) witness_->heard(now, result, commands_);
    for (Command& command : commands_) hear(command, now);

    const StepPlan* plan = scheduler_.plan(now, events_);
    if (witness_ != nullptr) witness_->planned(plan, events_);

    const auto ended = std::count_if(events_.begin(), events_.end(),
                                     [](const Event& event) { return event.kind == EventKind::finished; });
    if (ended > 0) inbox_.ended(static_cast<uint32_t>(ended), now);
    scheduler_.occupancy(occupancy_);
    // Who rests is looked at in any case: nobody looks again before the next one comes.
    const bool rests = plan == nullptr && !scheduler_.step_in_flight();
    if (rests || now - forecast_at_ >= kForecastEvery || now < forecast_at_) {
        forecast_at_ = now;
        scheduler_.forecast(now, occupancy_.outlook);
    }
    fanout_.publish(events_, occupancy_);

    if (plan != nullptr) executor_.submit(*plan);  // may take as long as the step
    return {scheduler_.step_in_flight(), scheduler_.next_wakeup()};
}

void Loop::hear(Command& command, Nanos now) {
    switch (command.kind) {
        case Command::Kind::admit: {
            Event refused;
            refused.kind = EventKind::finished;
            refused.reason = FinishReason::refused;
            refused.seq = command.seq;
            refused.request = command.request.request;
            refused.time = now;
            // The inbox has asked the same question at the door, so this is rare: the facts may have changed.
            if (!scheduler_.admit(std::move(command.request), now)) events_.push_back(refused);
            break;
        }
        case Command::Kind::cancel:
            scheduler_.cancel(command.seq, now, events_);
            break;
        case Command::Kind::cancel_all:
            scheduler_.cancel_all(now, events_);
            break;
        case Command::Kind::learn:
            scheduler_.learn(command.model, command.cost);
            break;
        case Command::Kind::forget:
            scheduler_.forget(command.model);
            break;
    }
}

}  // namespace cadans::runtime
