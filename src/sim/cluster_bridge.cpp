// How pages come from the worker that read a prompt to the one that writes the answer.
#include <algorithm>

#include "base/check.h"
#include "sim/cluster_parts.h"

namespace cadans::sim {

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

}  // namespace cadans::sim
