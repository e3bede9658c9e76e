#include "sim/simulation.h"

#include <algorithm>

#include "base/check.h"

namespace cadans::sim {

Fate fate_of(uint32_t row, metrics::RequestRecord& record, metrics::Outcome outcome, Nanos now) {
    record.done(outcome, now);
    const metrics::Figures figures = metrics::figures_of(record);
    check(figures.receipt.total() == figures.total_ns, "a receipt sums to the total");
    Fate fate;
    fate.row = row;
    fate.outcome = outcome;
    fate.at = record.accepted();
    fate.queue = figures.queue_ns;
    fate.ttft = figures.ttft_ns;
    fate.per_token = figures.per_output_token_ns;
    fate.done = now;
    fate.output = figures.output_tokens;
    fate.cached = figures.cached_tokens;
    fate.preemptions = figures.preemptions;
    for (const metrics::Interval& span : record.transfers()) fate.transfer += span.end - span.begin;
    return fate;
}

SequenceRequest request_of(const Workload& workload, uint32_t row, SeqId seq) {
    const Arrival& one = workload.arrivals[row];
    SequenceRequest request;
    request.seq = seq;
    request.request = RequestId{row};
    request.prompt = workload.prompt_of(row);
    request.max_new_tokens = one.output;
    request.priority = one.priority;
    request.scope = one.scope;
    return request;
}

/// One request inside: what the door of a server would hold for it.
struct Simulation::Flight {
    Flight(uint32_t row_, RequestId request, Nanos at) : row(row_), record(request, at) {}

    uint32_t row;
    metrics::RequestRecord record;
    runtime::Place place;
    StepId told{};  ///< the last step that its record knows of
    bool started = false;
};

Simulation::Simulation(const Machine& machine, const Workload& workload, runtime::Witness* witness)
    : workload_(workload),
      scheduler_(machine.house, machine.policy),
      inbox_(scheduler_.house(), machine.house.limits.max_running + machine.queue),
      fanout_({}),
      executor_(machine.cost, now_, machine.between, machine.unsteady),
      loop_(inbox_, scheduler_, executor_, fanout_, witness),
      flights_(1) {}

Simulation::~Simulation() = default;

void Simulation::run(const OnEnd& on_end) {
    on_end_ = on_end;
    for (uint32_t row = 0; row < workload_.arrivals.size(); row++)
        heap_.push(workload_.arrivals[row].at, What::arrival, row);

    while (!heap_.empty() && !stopped_) {
        // Whoever comes at the same instant is heard in the same turn, as the inbox would have it.
        heap_.hear_next(now_, [this](const Happening& one) {
            if (one.what == What::arrival) arrive(static_cast<uint32_t>(one.who));
        });
        if (!executor_.busy() || executor_.end() <= now_) turn();
    }
    check(stopped_ || scheduler_.idle(), "a simulation ends when everybody has ended");
}

void Simulation::arrive(uint32_t row) {
    const Arrival& one = workload_.arrivals[row];
    const SeqId seq = inbox_.new_seq();
    auto flight = std::make_unique<Flight>(row, RequestId{row}, now_);
    flight->record.parsed(now_);
    auto place = inbox_.reserve(1, now_);
    if (!place) return end(*flight, metrics::Outcome::refused);
    flight->place = *std::move(place);
    flight->record.tokenized(now_);
    flight->record.queued(seq, one.prompt, true, now_);
    if (!inbox_.submit(flight->place, request_of(workload_, row, seq))) return end(*flight, metrics::Outcome::refused);
    flights_.resize(index(seq) + 1);
    flights_[index(seq)] = std::move(flight);
}

void Simulation::turn() {
    const runtime::Loop::Next next = loop_.turn(now_);
    if (next.now) {
        heap_.push(executor_.end(), What::step_end);
    } else if (next.wakeup != sched::kNever && next.wakeup != next_wakeup_) {
        next_wakeup_ = next.wakeup;
        heap_.push(std::max(next.wakeup, now_), What::wakeup);
    }
    take_events();
}

void Simulation::take_events() {
    fanout_.take(events_);
    for (const Event& event : events_) {
        if (event.kind == EventKind::step_begin) {
            step_ = event;
            steps_++;
            busy_ += event.time - event.begin;
            // One who has not started needs to hear only of the step in which it does.
            for (Flight* flight : started_) tell(*flight, event);
            continue;
        }
        if (Flight* flight = find(event.seq)) tell(*flight, event);
    }
}

void Simulation::tell(Flight& flight, const Event& event) {
    if (event.kind == EventKind::step_share && !flight.started) {
        flight.started = true;
        started_.push_back(&flight);
        flight.record.on(step_);
    }
    flight.record.on(event);
    if (event.kind == EventKind::token) flight.record.flushed(event.seq, 1, event.time);
    if (event.kind != EventKind::finished) return;
    std::erase(started_, &flight);
    const std::unique_ptr<Flight> kept = std::move(flights_[index(event.seq)]);
    end(*kept, metrics::outcome_of(event.reason));
}

void Simulation::end(Flight& flight, metrics::Outcome outcome) {
    const Fate fate = fate_of(flight.row, flight.record, outcome, now_);
    if (!on_end_(fate, flight.record.flush_gaps())) stopped_ = true;
}

Simulation::Flight* Simulation::find(SeqId seq) noexcept {
    return index(seq) < flights_.size() ? flights_[index(seq)].get() : nullptr;
}

}  // namespace cadans::sim
