#include "metrics/histogram.h"

#include <algorithm>

namespace cadans::metrics {

Histogram::Histogram(std::span<const Nanos> bounds)
    : bounds_(bounds), counts_(std::make_unique<std::atomic<uint64_t>[]>(bounds.size() + 1)) {}

void Histogram::observe(Nanos span) noexcept {
    const auto bucket = std::lower_bound(bounds_.begin(), bounds_.end(), span) - bounds_.begin();
    sum_.fetch_add(span, std::memory_order_relaxed);
    counts_[static_cast<size_t>(bucket)].fetch_add(1, std::memory_order_relaxed);
}

Histogram::Snapshot Histogram::snapshot() const {
    Snapshot snapshot;
    uint64_t count = 0;
    for (size_t i = 0; i <= bounds_.size(); i++) {
        count += counts_[i].load(std::memory_order_relaxed);
        snapshot.cumulative.push_back(count);
    }
    snapshot.sum = sum_.load(std::memory_order_relaxed);
    return snapshot;
}

}  // namespace cadans::metrics
