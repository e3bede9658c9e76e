#include "serve/models/resident_set.h"

#include <algorithm>

#include "base/check.h"

namespace cadans::serve {

ResidentSet::ResidentSet(std::vector<Member> members, Nanos now) {
    for (const Member& member : members) {
        Entry entry{.facts = member, .keep = member.keep};
        if (member.resident) entry.state = State::resident;
        entry.last_used = now;
        entries_.push_back(entry);
    }
}

Nanos ResidentSet::expiry(const Entry& entry) {
    return entry.keep == kForEver ? kForEver : entry.last_used + std::min(entry.keep, kForEver - entry.last_used);
}

Nanos ResidentSet::expires(ModelId model, Nanos now) const {
    Entry entry = at(model);
    if (entry.users > 0) entry.last_used = now;
    return expiry(entry);
}

TicketId ResidentSet::ask(ModelId model, std::optional<Nanos> keep) {
    check(index(model) < entries_.size(), "a model is asked for by a number of this house");
    line_.push_back({.id = TicketId{++tickets_}, .model = model, .keep = keep, .failure = {}});
    return line_.back().id;
}

void ResidentSet::withdraw(TicketId ticket) {
    std::erase_if(line_, [ticket](const Ticket& each) { return each.id == ticket; });
}

void ResidentSet::leave(ModelId model, Nanos now) {
    check(at(model).users > 0, "who leaves a model was let in");
    at(model).users--;
    at(model).last_used = now;
}

void ResidentSet::keep(ModelId model, Nanos keep, Nanos now) {
    at(model).keep = keep;
    at(model).last_used = now;
}

std::optional<ResidentSet::Step> ResidentSet::next(uint64_t free_bytes, Nanos now) {
    if (std::optional<Step> step = serve_line(free_bytes)) return step;
    for (uint16_t m = 0; m < entries_.size(); m++) {
        Entry& entry = entries_[m];
        if (entry.state != State::resident || entry.users > 0 || expiry(entry) > now || wanted(ModelId{m})) continue;
        entry.state = State::absent;
        return Step{.kind = Step::Kind::unload, .model = ModelId{m}};
    }
    return std::nullopt;
}

bool ResidentSet::wanted(ModelId model) const {
    return std::ranges::any_of(line_, [model](const Ticket& each) { return each.model == model; });
}

std::optional<ResidentSet::Step> ResidentSet::serve_line(uint64_t free_bytes) {
    // Those whose load is over come before all: else the first in line could have their model unloaded again.
    for (auto ticket = line_.begin(); ticket != line_.end(); ++ticket) {
        if (ticket->failure) return refuse(ticket, *ticket->failure);
        if (ticket->entitled) return let_in(ticket);
    }
    bool loading = std::ranges::any_of(entries_, [](const Entry& each) { return each.state == State::loading; });
    bool blocked = false;
    for (auto ticket = line_.begin(); ticket != line_.end(); ++ticket) {
        const State state = at(ticket->model).state;
        if (state == State::resident && !blocked) return let_in(ticket);
        if (state != State::absent || loading) continue;
        if (std::optional<Step> step = make_room(*ticket, free_bytes)) {
            return step->kind == Step::Kind::refuse ? refuse(ticket, std::move(step->error)) : step;
        }
        blocked = loading = true;  // nobody behind it loads before it
    }
    return std::nullopt;
}

/// The next thing on the way to this one's model. Nothing: it waits until somebody is done.
std::optional<ResidentSet::Step> ResidentSet::make_room(const Ticket& ticket, uint64_t free_bytes) {
    const uint64_t needed = at(ticket.model).facts.bytes;
    if (needed <= free_bytes) {
        at(ticket.model).state = State::loading;
        return Step{.kind = Step::Kind::load, .model = ticket.model};
    }
    uint64_t idle = 0, busy = 0;
    std::optional<uint16_t> oldest;
    for (uint16_t m = 0; m < entries_.size(); m++) {
        const Entry& entry = entries_[m];
        if (entry.state != State::resident) continue;
        (entry.users > 0 ? busy : idle) += entry.facts.bytes;
        if (entry.users == 0 && (!oldest || entry.last_used < entries_[*oldest].last_used)) oldest = m;
    }
    if (needed > free_bytes + idle + busy) {
        Error error{ErrorCode::no_memory,
                    "the model needs " + format_size(needed) + " of memory, but only " +
                        format_size(free_bytes + idle + busy) + " can be had, with every other model unloaded",
                    "model"};
        return Step{.kind = Step::Kind::refuse, .error = std::move(error)};
    }
    if (needed > free_bytes + idle || !oldest) return std::nullopt;
    entries_[*oldest].state = State::absent;
    return Step{.kind = Step::Kind::unload, .model = ModelId{*oldest}};
}

ResidentSet::Step ResidentSet::let_in(std::deque<Ticket>::iterator ticket) {
    Entry& entry = at(ticket->model);
    entry.users++;
    entry.keep = ticket->keep.value_or(entry.facts.keep);
    const Step step{.kind = Step::Kind::let_in, .model = ticket->model, .ticket = ticket->id};
    line_.erase(ticket);
    return step;
}

ResidentSet::Step ResidentSet::refuse(std::deque<Ticket>::iterator ticket, Error error) {
    Step step{.kind = Step::Kind::refuse, .model = ticket->model, .ticket = ticket->id, .error = std::move(error)};
    line_.erase(ticket);
    return step;
}

void ResidentSet::loaded(ModelId model, Nanos now) {
    Entry& entry = at(model);
    check(entry.state == State::loading, "a model is loaded that was to be");
    entry.state = State::resident;
    entry.last_used = now;
    entry.keep = entry.facts.keep;
    for (Ticket& ticket : line_)
        if (ticket.model == model) ticket.entitled = true;
}

void ResidentSet::load_failed(ModelId model, const Error& error) {
    check(at(model).state == State::loading, "a load fails that was begun");
    at(model).state = State::absent;
    for (Ticket& ticket : line_)
        if (ticket.model == model) ticket.failure = error;
}

void ResidentSet::load_broken_off(ModelId model) {
    check(at(model).state == State::loading, "a load is broken off that was begun");
    at(model).state = State::absent;
}

uint64_t ResidentSet::resident_bytes() const {
    uint64_t sum = 0;
    for (const Entry& entry : entries_)
        if (entry.state != State::absent) sum += entry.facts.bytes;
    return sum;
}

bool ResidentSet::needs_memory() const {
    return std::ranges::any_of(line_, [this](const Ticket& each) { return at(each.model).state == State::absent; });
}

Nanos ResidentSet::next_expiry() const {
    Nanos next = kForEver;
    for (uint16_t m = 0; m < entries_.size(); m++) {
        const Entry& entry = entries_[m];
        if (entry.state == State::resident && entry.users == 0 && !wanted(ModelId{m}))
            next = std::min(next, expiry(entry));
    }
    return next;
}

}  // namespace cadans::serve
