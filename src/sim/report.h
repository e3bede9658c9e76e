// What one simulated run comes down to: the few numbers that people compare.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/simulation.h"

namespace cadans::sim {

/// Nearest rank over all values; absent where there are none.
struct Spread {
    Nanos p50 = 0, p90 = 0, p99 = 0, max = 0;
};

/// What is promised to a request. Zero multiples do not arise: every limit is more than 0.
struct Promise {
    Nanos gap = 0;              ///< between two words; mean time per output token for goodput
    std::optional<Nanos> ttft;  ///< first word; absent: `multiple` of its own isolated prefill
    uint32_t multiple = 5;
    Nanos stall = 0;        ///< a longer gap is a stall
    double ttft_scale = 1;  ///< times that multiple, where a promise is tried more or less tightly
};

/// Time to first token of a request that has the machine to itself, by the cost: its prompt in large steps.
Nanos isolated_prefill(const StepCost& cost, uint32_t prompt);

/// The step that a lone answer takes at kIsolatedContext tokens.
Nanos isolated_decode(const StepCost& cost);
inline constexpr uint32_t kIsolatedContext = 1024;

struct Report {
    uint64_t requests = 0;  ///< rows of the workload
    uint64_t finished = 0, refused = 0;
    std::optional<Spread> ttft, gap, queue;
    std::vector<Nanos> ttft_curve, gap_curve;  ///< evenly from the shortest to the longest; for pictures
    double stalls_per_1000 = 0;                ///< of output tokens
    double goodput_rps = 0;                    ///< requests a second that kept the promise
    double attained = 0;                       ///< share of all rows that did
    uint64_t output_tokens = 0, cached_tokens = 0, preemptions = 0;
    uint64_t steps = 0;
    Nanos span = 0;   ///< from the first arrival to the last end
    double busy = 0;  ///< share of it spent in steps
};

/// Collects fates. Thread rule: one thread.
class Reporter {
  public:
    Reporter(const Workload& workload, const StepCost& cost, const Promise& promise)
        : workload_(workload), cost_(cost), promise_(promise) {}

    void add(const Fate& fate, const std::vector<Nanos>& gaps);
    Report finish(const Simulation& run);

    bool kept(const Fate& fate) const;

  private:
    const Workload& workload_;
    StepCost cost_;
    Promise promise_;
    Report report_;
    std::vector<Nanos> ttfts_, gaps_, queues_;
    uint64_t kept_ = 0, stalls_ = 0;
    Nanos last_end_ = 0;
};

/// At most kCurvePoints of the ascending values, first and last among them.
std::vector<Nanos> curve_of(const std::vector<Nanos>& ascending);
inline constexpr size_t kCurvePoints = 401;

/// Nearest-rank figures; sorts `values`.
std::optional<Spread> spread_of(std::vector<Nanos>& values);

/// Runs the workload on the machine to its end.
Report simulate(const Machine& machine, const Workload& workload, const Promise& promise);

}  // namespace cadans::sim
