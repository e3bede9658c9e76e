// What is still to happen, earliest first; of two things at one instant, the one that was put in first.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/units.h"

namespace cadans::sim {

enum class What : uint8_t {
    arrival,    ///< `who`: row of the workload
    step_end,   ///< the step in flight is done; in a cluster of worker `who`
    wakeup,     ///< the loop asked to be turned; in a cluster that of worker `who`
    pulled,     ///< all pages of sequence `who` are with the worker that goes on
    departure,  ///< the asker of request `who` leaves
    reading,    ///< a slow client, request `who`, takes what is there
    draining,   ///< nobody is let in any more
    stopping,   ///< everybody has to leave
};

struct Happening {
    Nanos at = 0;
    What what = What::arrival;
    uint64_t who = 0;
    uint64_t order = 0;  ///< rank of its push
};

/// Thread rule: one thread. Cost: O(log n) a push or pop.
class EventHeap {
  public:
    void push(Nanos at, What what, uint64_t who = 0) {
        heap_.push_back({at, what, who, pushed_++});
        std::push_heap(heap_.begin(), heap_.end(), later);
    }

    /// The earliest; there must be one.
    const Happening& top() const { return heap_.front(); }

    Happening pop() {
        std::pop_heap(heap_.begin(), heap_.end(), later);
        const Happening first = heap_.back();
        heap_.pop_back();
        return first;
    }

    /// Sets the clock to the earliest instant, which there must be, and hands over all that happens then, in order;
    /// what is put in for it meanwhile included.
    template <class Hear>
    void hear_next(Nanos& clock, Hear&& hear) {
        clock = top().at;
        while (!empty() && top().at == clock) hear(pop());
    }

    bool empty() const noexcept { return heap_.empty(); }
    size_t size() const noexcept { return heap_.size(); }

  private:
    static bool later(const Happening& a, const Happening& b) noexcept {
        return a.at != b.at ? a.at > b.at : a.order > b.order;
    }

    std::vector<Happening> heap_;
    uint64_t pushed_ = 0;
};

}  // namespace cadans::sim
