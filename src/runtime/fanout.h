// The way out: the engine appends events, whoever serves them swaps them out.
#pragma once

#include <mutex>
#include <vector>

#include "flow/event.h"
#include "flow/occupancy.h"

namespace cadans::runtime {

/// Wakes the consumer, from the engine thread: must neither block, allocate nor throw (an eventfd write).
struct Notifier {
    void (*call)(void* self) noexcept = nullptr;
    void* self = nullptr;
};

/// One queue for all sequences: the consumer sorts by Event::seq and Event::request. Order is kept.
/// Nothing is dropped: a consumer that never takes makes the queue grow.
///
/// Thread-safe; meant for one engine thread and one consumer. One of the two files that hold a lock.
/// Cost: no allocation once both sides' buffers have grown to the usual size.
class Fanout {
  public:
    explicit Fanout(Notifier notifier, size_t events_expected = 4096);

    /// Engine: moves `events` in and leaves it empty. Notifies when the queue was empty before.
    void publish(std::vector<Event>& events, const Occupancy& occupancy);

    /// Consumer: swaps everything out; `out` is cleared first. Call it after each notification.
    void take(std::vector<Event>& out);

    /// Anyone: how full the house was after the last turn.
    Occupancy occupancy() const;

    /// Occupancy::outlook alone.
    void outlook(Outlook& out) const;

  private:
    Notifier notifier_;
    mutable std::mutex lock_;
    std::vector<Event> queue_;
    Occupancy occupancy_;
};

}  // namespace cadans::runtime
