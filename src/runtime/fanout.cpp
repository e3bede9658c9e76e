#include "runtime/fanout.h"

namespace cadans::runtime {

Fanout::Fanout(Notifier notifier, size_t events_expected) : notifier_(notifier) { queue_.reserve(events_expected); }

void Fanout::publish(std::vector<Event>& events, const Occupancy& occupancy) {
    bool wake = false;
    {
        std::lock_guard guard(lock_);
        occupancy_ = occupancy;
        wake = queue_.empty() && !events.empty();
        queue_.insert(queue_.end(), events.begin(), events.end());
    }
    events.clear();
    if (wake && notifier_.call != nullptr) notifier_.call(notifier_.self);
}

void Fanout::take(std::vector<Event>& out) {
    out.clear();
    std::lock_guard guard(lock_);
    queue_.swap(out);
}

Occupancy Fanout::occupancy() const {
    std::lock_guard guard(lock_);
    return occupancy_;
}

void Fanout::outlook(Outlook& out) const {
    std::lock_guard guard(lock_);
    out = occupancy_.outlook;
}

}  // namespace cadans::runtime
