// Brings the engine's events to the requests that wait for them.
#pragma once

#include <list>
#include <unordered_map>
#include <vector>

#include "flow/event.h"
#include "runtime/fanout.h"
#include "runtime/inbox.h"
#include "serve/models/model_keeper.h"
#include "serve/record/live_board.h"

namespace cadans::serve {

/// Who wants the events of a request's sequences.
class EventListener {
  public:
    virtual ~EventListener() = default;
    virtual void on(const Event& event) = 0;
    virtual void settled() = 0;  ///< after the last event of one take
};

/// A place in the queue stays taken, and the model in memory, until the engine has ended every sequence of the request,
/// also when its client is long gone. Thread rule: one thread. Borrows inbox, board and listeners.
class Flights {
  public:
    Flights(runtime::Inbox& inbox, LiveBoard& board) : inbox_(inbox), board_(board) {}

    /// From here on `listener` hears of these sequences. Before they are submitted.
    void add(EventListener& listener, runtime::Place place, Stay stay, std::vector<SeqId> seqs);

    /// The place that goes with a listener, to submit under. Null when it has none.
    runtime::Place* place_of(const EventListener& listener);

    /// What still runs is cancelled; events come until all has ended. Harmless when unknown.
    void cancel(const EventListener& listener);

    /// No more events are wanted: what still runs is cancelled. Harmless when unknown.
    void leave(const EventListener& listener);

    /// A sequence was never submitted: nobody will end it.
    void forget(SeqId seq);

    /// Hands out all that the fanout holds.
    void take(runtime::Fanout& fanout);

    /// How many requests came before this one and have not ended.
    uint32_t older_than(const EventListener& listener) const;

    /// What the engine said of a sequence's first word when events were last taken. Null when it said nothing.
    const Forecast* forecast_of(SeqId seq) const noexcept;

    bool empty() const noexcept { return flights_.empty(); }

  private:
    struct Flight {
        EventListener* listener;
        runtime::Place place;
        Stay stay;
        std::vector<SeqId> open;
    };

    void land(std::list<Flight>::iterator flight, SeqId seq);

    runtime::Inbox& inbox_;
    LiveBoard& board_;
    std::list<Flight> flights_;  // in order of admission
    std::unordered_map<SeqId, std::list<Flight>::iterator> by_seq_;
    std::vector<Event> events_;
    Outlook outlook_;
    std::vector<EventListener*> touched_;
};

}  // namespace cadans::serve
