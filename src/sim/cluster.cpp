#include "sim/cluster.h"

#include <algorithm>
#include <tuple>

#include "base/check.h"
#include "sim/cluster_parts.h"
#include "sim/report.h"

namespace cadans::sim {
Cluster::Cluster(const ClusterSpec& spec, const Workload& workload)
    : workload_(workload),
      split_(!spec.members.empty() && spec.members.front().role != Role::shared),
      flights_(workload.arrivals.size() + 1) {
    check(spec.link.bytes_per_second > 0 && spec.kv.layers > 0, "a link moves bytes, in layers");
    const auto everybody = static_cast<uint32_t>(workload.arrivals.size() + 1);
    for (const Member& member : spec.members) {
        check(split_ == (member.role != Role::shared), "all share, or none does");
        check(member.machine.house.models.size() == 1, "a worker of a cluster has one model");
        const uint32_t places = member.machine.house.limits.max_running + member.machine.queue;
        places_ += std::min(places, everybody);
        workers_.push_back(std::make_unique<Worker>(member, static_cast<uint32_t>(workers_.size()),
                                                    split_ ? everybody : places, spec, now_));
        (member.role == Role::decode ? writers_ : readers_).push_back(workers_.back().get());
    }
    check(!readers_.empty() && split_ == !writers_.empty(), "somebody reads, and somebody writes");
}

Cluster::~Cluster() = default;

void Cluster::run(const OnEnd& on_end) {
    on_end_ = on_end;
    for (uint32_t row = 0; row < workload_.arrivals.size(); row++)
        heap_.push(workload_.arrivals[row].at, What::arrival, row);

    while (!heap_.empty() && !stopped_) {
        heap_.hear_next(now_, [this](const Happening& one) {
            if (one.what == What::arrival) {
                arrive(static_cast<uint32_t>(one.who));
            } else if (one.what == What::pulled) {
                pulled(*flights_[one.who]);
            } else {
                workers_[one.who]->woken = true;
            }
        });
        // A turn may make room for one who waits at another worker, which then has its turn at the same instant.
        for (bool again = true; again;) {
            again = false;
            for (const auto& worker : workers_) {
                if (stopped_ || !worker->is_due(now_)) continue;
                turn(*worker);
                serve_bridge();
                serve_line();
                again = true;
            }
        }
    }
    if (stopped_) return;
    check(inside_ == 0 && line_.empty() && bridge_.empty(), "a cluster's run ends when everybody has ended");
    for (const auto& worker : workers_)
        check(worker->scheduler.idle() && worker->held == 0 && worker->taken.empty() && worker->started.empty(),
              "at the end nobody is left at a worker");
}

void Cluster::arrive(uint32_t row) {
    auto flight = std::make_unique<Flight>(row, workload_.arrivals[row], now_);
    flight->record.parsed(now_);
    if (split_) {
        arrive_split(std::move(flight));
    } else {
        arrive_shared(std::move(flight));
    }
}

void Cluster::arrive_shared(std::unique_ptr<Flight> flight) {
    const auto order = by_first_token(flight->row, readers_);
    bool queued = false;
    for (Worker* worker : order) {
        auto place = worker->inbox.reserve(1, now_);
        if (!place) continue;
        flight->place = *std::move(place);
        if (!queued) {
            flight->record.tokenized(now_);
            flight->record.queued(flight->seq(), flight->prompt, true, now_);
            queued = true;
        }
        if (!send(*flight, *worker, flight->output)) continue;
        inside_++;
        flights_[index(flight->seq())] = std::move(flight);
        return;
    }
    end(*flight, metrics::Outcome::refused);
}

void Cluster::arrive_split(std::unique_ptr<Flight> flight) {
    const bool could =
        std::any_of(readers_.begin(), readers_.end(), [&](const Worker* w) { return w->fits(flight->prompt, 1); }) &&
        std::any_of(writers_.begin(), writers_.end(),
                    [&](const Worker* w) { return w->fits(flight->prompt, flight->output); });
    if (!could || inside_ == places_) return end(*flight, metrics::Outcome::refused);
    inside_++;
    flight->record.tokenized(now_);
    flight->record.queued(flight->seq(), flight->prompt, true, now_);
    line_.push_back(flight.get());
    flights_[index(flight->seq())] = std::move(flight);
    serve_line();
}

/// In order of arrival: who finds no room holds up those behind.
void Cluster::serve_line() {
    while (!line_.empty()) {
        Flight& flight = *line_.front();
        std::vector<Worker*> able;
        for (Worker* worker : readers_)
            if (worker->has_room_to_read(flight)) able.push_back(worker);
        if (able.empty()) return;
        line_.pop_front();
        Worker& worker = *by_first_token(flight.row, able).front();
        auto place = worker.inbox.reserve(1, now_);
        check(place.has_value(), "a prefill worker has a place for everybody");
        flight.place = *std::move(place);
        check(send(flight, worker, 1), "who fits is taken");
        worker.held += worker.bytes_of(flight.prompt);
    }
}

/// Hands a prompt and its wish for `tokens` tokens to a worker on the place that it has there.
bool Cluster::send(Flight& flight, Worker& worker, uint32_t tokens) {
    SequenceRequest request = request_of(workload_, flight.row, flight.seq());
    request.max_new_tokens = tokens;
    if (!worker.inbox.submit(flight.place, std::move(request))) return false;
    flight.at = &worker;
    flight.joined = now_;
    worker.woken = true;
    if (workers_.size() == 1) return true;
    const Beginnings prompt = Beginnings::of(workload_, flight.row);
    const uint32_t known = std::min(worker.knows(prompt), flight.prompt - 1);
    worker.unheard += isolated_prefill(worker.cost, flight.prompt - known);
    worker.seen.insert(prompt.names.begin(), prompt.names.end());
    return true;
}

/// The workers by predicted time to first token, the soonest first; of equals the one with fewer inside, then the
/// earlier one.
std::vector<Cluster::Worker*> Cluster::by_first_token(uint32_t row, const std::vector<Worker*>& among) {
    if (among.size() == 1) return among;
    const uint32_t prompt = workload_.arrivals[row].prompt;
    const Beginnings beginnings = Beginnings::of(workload_, row);
    struct Bid {
        Nanos first_token;
        uint32_t inside, number;
        Worker* worker;
        bool operator<(const Bid& other) const noexcept {
            return std::tie(first_token, inside, number) < std::tie(other.first_token, other.inside, other.number);
        }
    };
    std::vector<Bid> bids;
    for (Worker* worker : among) {
        if (worker->outlook_old) worker->scheduler.forecast(now_, worker->outlook);
        worker->outlook_old = false;
        const uint32_t left = prompt - std::min(worker->knows(beginnings), prompt - 1);
        const auto told = worker->outlook.newcomer(worker->model().model, left, 1, now_);
        const Nanos first = worker->unheard + (told ? told->first_token * kNanosPerMicro : 0);
        bids.push_back({first, worker->inbox.in_flight(), worker->number, worker});
    }
    std::sort(bids.begin(), bids.end());
    std::vector<Worker*> order;
    for (const Bid& bid : bids) order.push_back(bid.worker);
    return order;
}

void Cluster::turn(Worker& worker) {
    worker.woken = false;
    const runtime::Loop::Next next = worker.loop.turn(now_);
    worker.outlook_old = true;
    worker.unheard = 0;
    if (next.now) {
        heap_.push(worker.executor.end(), What::step_end, worker.number);
    } else if (next.wakeup != sched::kNever && next.wakeup != worker.next_wakeup) {
        worker.next_wakeup = next.wakeup;
        heap_.push(std::max(next.wakeup, now_), What::wakeup, worker.number);
    }
    worker.fanout.take(events_);
    for (const Event& event : events_) {
        if (event.kind == EventKind::step_begin) {
            worker.step = event;
            worker.steps++;
            worker.busy += event.time - event.begin;
            for (Flight* flight : worker.started) {
                if (event.begin < flight->joined && event.time <= flight->joined) continue;
                Event seen = event;  // of a step that ran when it came, the rest
                seen.begin = std::max(event.begin, flight->joined);
                flight->record.on(seen);
            }
            continue;
        }
        if (const auto& flight = flights_[index(event.seq)]) tell(worker, *flight, event);
    }
}

void Cluster::tell(Worker& worker, Flight& flight, const Event& event) {
    if (event.kind == EventKind::step_share && !flight.listed) {
        flight.listed = true;
        worker.started.push_back(&flight);
        flight.record.on(worker.step);
    }
    const bool moves = worker.role == Role::prefill && flight.output > 1;
    const bool ends = event.kind == EventKind::finished;
    if (ends && moves && event.reason == FinishReason::length) return has_read(worker, flight, event);
    flight.record.on(event);
    if (event.kind == EventKind::token) {
        flight.record.flushed(event.seq, 1, event.time);
        flight.written++;
        if (flight.written == 1) flight.first = event.score.token;
    }
    if (event.kind == EventKind::step_share && moves) filled(flight, event);
    if (!ends) return;
    std::erase(worker.started, &flight);
    std::erase(worker.taken, &flight);
    if (worker.role == Role::prefill) {
        worker.held -= worker.bytes_of(flight.prompt);
        if (flight.to != nullptr) std::erase(flight.to->taken, &flight);
        std::erase(bridge_, &flight);
    }
    const std::unique_ptr<Flight> kept = std::move(flights_[index(event.seq)]);
    inside_--;
    end(*kept, metrics::outcome_of(event.reason));
}

void Cluster::end(Flight& flight, metrics::Outcome outcome) {
    const Fate fate = fate_of(flight.row, flight.record, outcome, now_);
    if (!on_end_(fate, flight.record.flush_gaps())) stopped_ = true;
}

std::vector<MemberFigures> Cluster::figures() const {
    std::vector<MemberFigures> all;
    for (const auto& worker : workers_)
        all.push_back(
            {worker->role, worker->steps, worker->busy, worker->link.busy(), worker->scheduler.pages().leased_bytes()});
    return all;
}

void Cluster::check_invariants() const {
    for (const auto& worker : workers_) {
        worker->scheduler.check_invariants();
        uint64_t held = 0;
        for (const auto& flight : flights_) {
            if (flight == nullptr || flight->at != worker.get()) continue;
            if (worker->role == Role::prefill) held += worker->bytes_of(flight->prompt);
        }
        check(held == worker->held, "a prefill worker holds the prompts that were sent to it and not pulled");
        for (const Flight* flight : worker->taken) check(flight->to == worker.get(), "who is taken knows by whom");
    }
}

}  // namespace cadans::sim
