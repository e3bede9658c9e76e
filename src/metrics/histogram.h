// How often a span was how long: fixed buckets, counted without a lock.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/units.h"

namespace cadans::metrics {

/// Thread-safe. A reader may see a span counted in a bucket whose sum it does not see yet, never a count
/// below an earlier one. Cost of observe(): a search in the bounds and two relaxed adds.
class Histogram {
  public:
    /// `bounds` ascend: bucket i counts spans <= bounds[i]; one more bucket takes the rest. The bounds
    /// outlive the histogram.
    explicit Histogram(std::span<const Nanos> bounds);

    void observe(Nanos span) noexcept;

    struct Snapshot {
        std::vector<uint64_t> cumulative;  ///< as Prometheus counts: spans <= bound; the last is all of them
        Nanos sum = 0;
    };
    Snapshot snapshot() const;
    std::span<const Nanos> bounds() const noexcept { return bounds_; }

  private:
    std::span<const Nanos> bounds_;
    std::unique_ptr<std::atomic<uint64_t>[]> counts_;
    std::atomic<Nanos> sum_{0};
};

}  // namespace cadans::metrics
