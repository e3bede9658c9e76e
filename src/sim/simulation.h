// The real inbox, loop, scheduler, fanout and records on a clock that only jumps.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "flow/step_cost.h"
#include "metrics/figures.h"
#include "metrics/request_record.h"
#include "runtime/loop.h"
#include "sched/scheduler.h"
#include "sim/event_heap.h"
#include "sim/modelled_executor.h"
#include "sim/workload.h"

namespace cadans::sim {

/// The machine that is simulated. Plain values.
struct Machine {
    sched::House house;
    sched::Policy policy;
    StepCost cost;               ///< what steps take; what a policy believes of them is the policy's own
    uint32_t queue = 64;         ///< requests that may wait; more are refused
    Unsteadiness unsteady = {};  ///< of its steps
    Nanos between = 0;           ///< from a step's end to the next one's begin
};

/// What became of one row of the workload.
struct Fate {
    uint32_t row = 0;
    metrics::Outcome outcome = metrics::Outcome::refused;
    Nanos at = 0;                    ///< arrival
    Nanos queue = 0;                 ///< until it first had a row in a step
    std::optional<Nanos> ttft;       ///< none: it never had a token
    std::optional<Nanos> per_token;  ///< mean time per output token; none with fewer than two
    Nanos done = 0;
    uint32_t output = 0;
    uint32_t cached = 0;
    uint32_t preemptions = 0;
    Nanos transfer = 0;  ///< with its prompt read, waiting for its pages to be where it goes on
};

/// The fate of a request that has just ended. The record's receipt sums to its total, or the process stops.
Fate fate_of(uint32_t row, metrics::RequestRecord& record, metrics::Outcome outcome, Nanos now);

/// What the scheduler is asked for that row, under that number.
SequenceRequest request_of(const Workload& workload, uint32_t row, SeqId seq);

/// One run. Thread rule: one thread. The same workload and machine give the same fates.
class Simulation {
  public:
    /// Workload and witness (null: none) outlive the simulation.
    Simulation(const Machine& machine, const Workload& workload, runtime::Witness* witness = nullptr);
    ~Simulation();

    /// Told of every request as it ends, with its gaps between tokens; returning false stops the run.
    using OnEnd = std::function<bool(const Fate& fate, const std::vector<Nanos>& gaps)>;

    /// Runs until everybody has ended, or `on_end` says stop.
    void run(const OnEnd& on_end);

    Nanos now() const noexcept { return now_; }
    uint64_t steps() const noexcept { return steps_; }
    Nanos busy() const noexcept { return busy_; }  ///< time spent in steps

  private:
    struct Flight;

    void arrive(uint32_t row);
    void turn();
    void take_events();
    void tell(Flight& flight, const Event& event);
    void end(Flight& flight, metrics::Outcome outcome);
    Flight* find(SeqId seq) noexcept;

    const Workload& workload_;
    Nanos now_ = 0;
    sched::Scheduler scheduler_;
    runtime::Inbox inbox_;
    runtime::Fanout fanout_;
    ModelledExecutor executor_;
    runtime::Loop loop_;
    EventHeap heap_;
    std::vector<Event> events_;
    std::vector<std::unique_ptr<Flight>> flights_;  ///< by sequence number
    std::vector<Flight*> started_;                  ///< those that have had a row and live
    Event step_;                                    ///< the newest step_begin
    Nanos next_wakeup_ = sched::kNever;
    OnEnd on_end_;
    bool stopped_ = false;
    uint64_t steps_ = 0;
    Nanos busy_ = 0;
};

}  // namespace cadans::sim
