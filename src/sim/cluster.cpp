#include "sim/cluster.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <unordered_set>

#include "base/check.h"
#include "base/random.h"
#include "kv/page_needs.h"
#include "sim/report.h"

namespace cadans::sim {
namespace {

/// Requests whose pages a decode worker has and that had no row there yet: with so many it takes in no more, so that a
/// place never waits for the link and pages wait where there is room for them. Source: the bridge queue of DistServe.
constexpr uint32_t kPulledAhead = 2;

/// Names for the beginnings of a prompt, shortest first, each `tokens` longer than the one before: equal names, equal
/// beginnings. None for a prompt like no other.
struct Beginnings {
    uint32_t tokens = 0;
    std::vector<uint64_t> names;

    static Beginnings of(const Workload& workload, uint32_t row) {
        const Arrival& one = workload.arrivals[row];
        Beginnings out;
        uint64_t name = mix64(one.scope);
        const auto add = [&](uint64_t part) { out.names.push_back(name = mix64(name ^ mix64(part))); };
        out.tokens = one.tokens.empty() ? workload.block_tokens : kPageTokens;
        if (one.tokens.empty()) {
            for (const uint64_t block : one.blocks) add(block);
            return out;
        }
        for (size_t p = 0; p + kPageTokens <= one.tokens.size(); p += kPageTokens) {
            uint64_t page = 0;
            for (size_t i = p; i < p + kPageTokens; i++) page = mix64(page ^ index(one.tokens[i]));
            add(page);
        }
        return out;
    }
};

}  // namespace

/// One request inside: what the doors of the workers would hold for it.
struct Cluster::Flight {
    Flight(uint32_t row_, const Arrival& asked, Nanos accepted)
        : row(row_), prompt(asked.prompt), output(asked.output), record(RequestId{row_}, accepted) {}

    SeqId seq() const noexcept { return SeqId{uint64_t{row} + 1}; }

    uint32_t row, prompt, output;
    metrics::RequestRecord record;
    runtime::Place place;
    Worker* at = nullptr;  ///< whose scheduler knows it, or knew it last
    bool listed = false;   ///< with Worker::started of `at`
    Nanos joined = 0;      ///< when `at` was sent it
    uint32_t written = 0;  ///< tokens of the answer

    // Where its pages move:
    Worker* to = nullptr;       ///< the decode worker; null: none has had room yet
    Nanos chosen = 0;           ///< when there was one
    uint32_t filled = 0;        ///< tokens of the prompt whose pages are full,
    uint32_t given = 0;         ///< and on their way
    Nanos last_here = 0;        ///< when the last of these has crossed
    std::optional<Nanos> read;  ///< when the prompt was
    TokenId first{};            ///< token of the answer
};

struct Cluster::Worker {
    Worker(const Member& member, uint32_t number_, uint32_t places, const ClusterSpec& spec, const Nanos& now)
        : number(number_),
          role(member.role),
          cost(member.machine.cost),
          scheduler(member.machine.house, member.machine.policy),
          inbox(scheduler.house(), places),
          fanout({}),
          executor(member.machine.cost, now, member.machine.between, member.machine.unsteady),
          loop(inbox, scheduler, executor, fanout),
          link(spec.link, spec.kv) {}

    /// Its loop has something to do, and no step keeps it from that.
    bool is_due(Nanos now) const noexcept { return woken && (!executor.busy() || executor.end() <= now); }

    const ModelFacts& model() const noexcept { return scheduler.house().models.front(); }
    const sched::SchedulerLimits& limits() const noexcept { return scheduler.house().limits; }

    /// Whether a request of that size could ever run here.
    bool fits(uint32_t prompt, uint32_t output) const noexcept {
        return uint64_t{prompt} + output <= model().context_tokens &&
               sched::tokens_computed_max(prompt, output) <= sched::longest_sequence(scheduler.house(), model());
    }

    uint64_t bytes_of(uint32_t tokens) const noexcept { return kv::most_bytes(model(), tokens, limits().max_rows); }

    /// What a flight will soon hold here: the scheduler's own promise to those it lets start.
    uint64_t promised_to(const Flight& one) const noexcept {
        const uint32_t longest = sched::tokens_computed_max(one.prompt, one.output);
        return bytes_of(std::min(longest, one.prompt + one.written + kPageTokens));
    }

    bool has_room_to_write(const Flight& asker) const noexcept {
        if (!fits(asker.prompt, asker.output)) return false;
        uint64_t promised = promised_to(asker);
        uint32_t ahead = 0;
        for (const Flight* one : taken) {
            promised += promised_to(*one);
            ahead += one->read.has_value() && one->written < 2;
        }
        return taken.empty() || (promised <= scheduler.house().page_bytes && ahead < kPulledAhead);
    }

    /// Prompts whose pages are still here count, besides those that are still to be read.
    bool has_room_to_read(const Flight& asker) const noexcept {
        if (!fits(asker.prompt, 1)) return false;
        return held == 0 || held + bytes_of(asker.prompt) <= scheduler.house().page_bytes;
    }

    /// A step in which all that were taken and this one write.
    Micros word_with(const Flight& asker) const noexcept {
        StepShape shape;
        for (const Flight* one : taken) cost.add(shape, one->prompt + one->written, 1, 1);
        cost.add(shape, asker.prompt, 1, 1);
        return cost.predict(shape);
    }

    /// Tokens of a prompt that the front believes to be here.
    uint32_t knows(const Beginnings& prompt) const {
        if (!scheduler.house().prefix_cache) return 0;
        uint32_t parts = 0;
        while (parts < prompt.names.size() && seen.contains(prompt.names[parts])) parts++;
        return parts * prompt.tokens;
    }

    const uint32_t number;
    const Role role;
    const StepCost cost;
    sched::Scheduler scheduler;
    runtime::Inbox inbox;
    runtime::Fanout fanout;
    ModelledExecutor executor;
    runtime::Loop loop;
    std::vector<Flight*> started;  ///< those that have had a row here, or came with pages, and live
    Event step;                    ///< the newest step_begin
    Nanos next_wakeup = sched::kNever;
    bool woken = false;  ///< something happened that its loop has not seen
    uint64_t steps = 0;
    Nanos busy = 0;

    // What the front keeps of it.
    Outlook outlook;
    bool outlook_old = true;
    Nanos unheard = 0;  ///< predicted time to read what was sent and its scheduler has not heard
    std::unordered_set<uint64_t> seen;

    // Where pages move.
    uint64_t held = 0;           ///< bytes of prompts that were sent here and are not pulled
    std::vector<Flight*> taken;  ///< whose pages come or came here, and that live
    Link link;
};

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
        now_ = heap_.top().at;
        while (!heap_.empty() && heap_.top().at == now_) {
            const Happening one = heap_.pop();
            if (one.what == What::arrival) {
                arrive(static_cast<uint32_t>(one.who));
            } else if (one.what == What::pulled) {
                pulled(*flights_[one.who]);
            } else {
                workers_[one.who]->woken = true;
            }
        }
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

/// A step has filled pages of a prompt: they are pulled, or wait for somebody to pull them.
void Cluster::filled(Flight& flight, const Event& event) {
    if (flight.filled == 0) {
        bridge_.push_back(&flight);
        serve_bridge();
        if (flight.to != nullptr) flight.chosen = event.begin;  // what is told at a step's end was so while it ran
    }
    flight.filled = std::max(flight.filled, event.position);
    pull(flight, event.begin, event.time);
}

/// All that is full and not on its way yet, of a step of that time.
void Cluster::pull(Flight& flight, Nanos begin, Nanos end) {
    if (flight.to == nullptr || flight.given == flight.filled) return;
    flight.last_here = flight.to->link.pull(flight.filled - flight.given, begin, end, flight.chosen);
    flight.given = flight.filled;
}

/// Finds decode workers, in the order in which prompts had their first rows.
void Cluster::serve_bridge() {
    while (!bridge_.empty()) {
        Flight& flight = *bridge_.front();
        flight.to = writer_for(flight);
        if (flight.to == nullptr) return;
        bridge_.pop_front();
        flight.chosen = now_;
        flight.to->taken.push_back(&flight);
        pull(flight, now_, now_);
        if (flight.read) heap_.push(flight.last_here, What::pulled, index(flight.seq()));
    }
}

Cluster::Worker* Cluster::writer_for(const Flight& flight) const {
    Worker* best = nullptr;
    for (Worker* worker : writers_) {
        if (!worker->has_room_to_write(flight)) continue;
        if (best == nullptr || worker->word_with(flight) < best->word_with(flight)) best = worker;
    }
    return best;
}

/// The prompt's worker is done: the sequence goes on elsewhere, and its record does not see the seam.
void Cluster::has_read(Worker& worker, Flight& flight, const Event& event) {
    check(flight.filled == flight.prompt && flight.written == 1, "a prompt that is read has brought a token");
    std::erase(worker.started, &flight);
    flight.listed = false;
    flight.read = event.time;
    flight.place = {};
    if (flight.to != nullptr) heap_.push(std::max(flight.last_here, now_), What::pulled, index(flight.seq()));
}

/// All pages are here: the decode worker goes on, and the prefill worker lets go of them.
void Cluster::pulled(Flight& flight) {
    Worker& from = *flight.at;
    Worker& to = *flight.to;
    const Nanos asked = std::clamp(flight.chosen, *flight.read, now_);
    crossings_.moved++;
    crossings_.tokens += flight.prompt;
    crossings_.held += asked - *flight.read;
    crossings_.exposed += now_ - asked;
    flight.record.waited_for_transfer({*flight.read, now_});
    from.held -= from.bytes_of(flight.prompt);

    SequenceRequest request = request_of(workload_, flight.row, flight.seq());
    request.prompt.push_back(flight.first);
    request.max_new_tokens = flight.output - 1;
    request.cache_prompt = false;  // nobody looks for prompts here
    check(to.scheduler.admit(std::move(request), now_, flight.prompt).has_value(), "who fits is taken");
    flight.at = &to;
    flight.joined = now_;
    flight.listed = true;
    to.started.push_back(&flight);
    to.woken = true;
    serve_line();
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
