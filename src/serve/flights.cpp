#include "serve/flights.h"

#include <algorithm>

namespace cadans::serve {

void Flights::add(EventListener& listener, runtime::Place place, Stay stay, std::vector<SeqId> seqs) {
    flights_.push_back({&listener, std::move(place), std::move(stay), std::move(seqs)});
    const auto flight = std::prev(flights_.end());
    for (const SeqId seq : flight->open) by_seq_.emplace(seq, flight);
}

runtime::Place* Flights::place_of(const EventListener& listener) {
    for (Flight& flight : flights_)
        if (flight.listener == &listener) return &flight.place;
    return nullptr;
}

void Flights::cancel(const EventListener& listener) {
    for (const Flight& flight : flights_) {
        if (flight.listener != &listener) continue;
        for (const SeqId seq : flight.open) inbox_.cancel(seq);
    }
}

void Flights::leave(const EventListener& listener) {
    cancel(listener);
    for (Flight& flight : flights_)
        if (flight.listener == &listener) flight.listener = nullptr;
}

void Flights::forget(SeqId seq) {
    if (const auto found = by_seq_.find(seq); found != by_seq_.end()) land(found->second, seq);
}

void Flights::land(std::list<Flight>::iterator flight, SeqId seq) {
    by_seq_.erase(seq);
    std::erase(flight->open, seq);
    if (flight->open.empty()) flights_.erase(flight);
}

void Flights::take(runtime::Fanout& fanout) {
    fanout.take(events_);
    fanout.outlook(outlook_);
    touched_.clear();
    const auto tell = [&](Flight& flight, const Event& event) {
        EventListener* const listener = flight.listener;  // who may leave when it hears this
        if (listener == nullptr) return;
        listener->on(event);
        if (std::find(touched_.begin(), touched_.end(), listener) == touched_.end()) touched_.push_back(listener);
    };
    board_.foretold(outlook_.line);
    for (const Event& event : events_) {
        board_.on(event);
        if (event.kind == EventKind::step_begin) {
            for (Flight& flight : flights_) tell(flight, event);
            continue;
        }
        const auto found = by_seq_.find(event.seq);
        if (found == by_seq_.end()) continue;
        const auto flight = found->second;
        tell(*flight, event);
        if (event.kind == EventKind::finished) land(flight, event.seq);
    }
    board_.settled();
    for (EventListener* listener : touched_) listener->settled();
}

uint32_t Flights::older_than(const EventListener& listener) const {
    uint32_t count = 0;
    for (const Flight& flight : flights_) {
        if (flight.listener == &listener) break;
        ++count;
    }
    return count;
}

const Forecast* Flights::forecast_of(SeqId seq) const noexcept {
    const auto found = std::ranges::find(outlook_.line, seq, &Forecast::seq);
    return found == outlook_.line.end() ? nullptr : &*found;
}

}  // namespace cadans::serve
