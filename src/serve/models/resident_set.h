// Which models are in memory, which may come in and which must go: decided by numbers alone.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "base/units.h"
#include "serve/dialects/keep_alive.h"

namespace cadans::serve {

/// One who asks for a model.
enum class TicketId : uint64_t {};

/// Askers stand in one line. Whoever asks for a model that is in memory is let in at once, unless the first of the line
/// waits for memory that others use: then it waits behind, so that nobody is passed for ever. One model is loaded at a
/// time; all who ask for it, those who come meanwhile included, are let in together when it is there. Room is made by
/// the model that has been idle longest; one that somebody uses, or is let in to use, never goes.
///
/// The owner carries out what next() says and reports how it went. Time and free memory are arguments. Thread rule: one
/// thread. Cost: linear in models and in the line.
class ResidentSet {
  public:
    struct Member {
        uint64_t bytes = 0;     ///< memory that goes back when it is unloaded
        Nanos keep = kForEver;  ///< how long it stays idle when a request does not say
        bool resident = false;  ///< it is here from the start
    };

    /// Models are numbered as ModelId does. Those that are here from the start are idle since `now`.
    explicit ResidentSet(std::vector<Member> members, Nanos now = 0);

    enum class State : uint8_t { absent, loading, resident };

    State state(ModelId model) const { return at(model).state; }
    uint32_t users(ModelId model) const { return at(model).users; }
    uint64_t bytes(ModelId model) const { return at(model).facts.bytes; }
    uint64_t resident_bytes() const;  ///< of all that are here or coming
    /// next() will look at the free memory.
    bool needs_memory() const;

    /// When the model goes if nobody asks for it any more; kForEver: not by itself. Of a resident one.
    Nanos expires(ModelId model, Nanos now) const;

    // Those who ask.

    /// Stands in line from now on; next() says when it may go in. `keep`: how long the model then stays idle, until
    /// another says something else; none: as is usual.
    TicketId ask(ModelId model, std::optional<Nanos> keep);
    /// It does not want to any more. Harmless when it is not in line.
    void withdraw(TicketId ticket);
    /// One who was let in is done.
    void leave(ModelId model, Nanos now);
    /// How long the model stays idle from now on. Harmless when it is not here.
    void keep(ModelId model, Nanos keep, Nanos now);

    // What is to be done.

    struct Step {
        enum class Kind : uint8_t { let_in, refuse, unload, load } kind = Kind::let_in;
        ModelId model{};
        TicketId ticket{};  ///< let_in and refuse
        Error error = {};   ///< refuse: with both numbers
    };

    /// One thing at a time, until there is nothing. `free_bytes` is what a model that comes may take now; what unloaded
    /// models give back after that call is counted by the next.
    std::optional<Step> next(uint64_t free_bytes, Nanos now);

    /// How the load that next() ordered went. A failed one refuses all who ask for that model, with the reason.
    void loaded(ModelId model, Nanos now);
    void load_failed(ModelId model, const Error& error);
    /// It was broken off, since nobody waited for it any more. Who has come since has it loaded anew.
    void load_broken_off(ModelId model);

    /// The next time at which next() would say something though nobody did anything; kForEver: none.
    Nanos next_expiry() const;

  private:
    struct Entry {
        Member facts;
        State state = State::absent;
        uint32_t users = 0;
        Nanos last_used = 0;
        Nanos keep = kForEver;
    };
    struct Ticket {
        TicketId id{};
        ModelId model{};
        std::optional<Nanos> keep;
        bool entitled = false;         ///< its model's load is over: it goes in whoever waits before it
        std::optional<Error> failure;  ///< its model's load failed
    };

    Entry& at(ModelId model) { return entries_[index(model)]; }
    const Entry& at(ModelId model) const { return entries_[index(model)]; }
    std::optional<Step> serve_line(uint64_t free_bytes);
    std::optional<Step> make_room(const Ticket& ticket, uint64_t free_bytes);
    bool wanted(ModelId model) const;
    Step let_in(std::deque<Ticket>::iterator ticket);
    Step refuse(std::deque<Ticket>::iterator ticket, Error error);
    static Nanos expiry(const Entry& entry);

    std::vector<Entry> entries_;
    std::deque<Ticket> line_;
    uint64_t tickets_ = 0;
};

}  // namespace cadans::serve
