// How the threads of a step divide a phase's work: never by what they computed, so never visible in a result.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <vector>

namespace cadans::engine {

/// One counter a phase. The threads take units from it until none are left; `rewind` before the next step.
/// Thread rule: take() from any thread; rewind() while no thread is in a phase.
class WorkShare {
  public:
    explicit WorkShare(uint32_t phases) : counters_(phases) {}

    void rewind() noexcept {
        for (Counter& counter : counters_) counter.next.store(0, std::memory_order_relaxed);
    }

    /// Calls f(unit) for the units of [0, units) that this thread gets.
    template <class F>
    void take(uint32_t phase, uint32_t units, F&& f) noexcept {
        std::atomic<uint32_t>& next = counters_[phase].next;
        for (uint32_t unit; (unit = next.fetch_add(1, std::memory_order_relaxed)) < units;) f(unit);
    }

  private:
    struct alignas(64) Counter {
        std::atomic<uint32_t> next{0};
    };
    std::vector<Counter> counters_;
};

/// The contiguous part of [0, n) that thread t of `threads` gets, in multiples of `grain`.
struct Part {
    uint32_t begin, end;
    static Part of(uint32_t n, uint32_t t, uint32_t threads, uint32_t grain = 1) noexcept {
        const uint64_t grains = (n + grain - 1) / grain;
        const auto edge = [&](uint32_t i) { return std::min(n, static_cast<uint32_t>(grains * i / threads) * grain); };
        return {edge(t), edge(t + 1)};
    }
};

}  // namespace cadans::engine
