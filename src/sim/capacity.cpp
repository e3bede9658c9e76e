#include "sim/capacity.h"

#include <algorithm>
#include <limits>

namespace cadans::sim {

bool keeps(const Machine& machine, const Workload& workload, const Promise& promise, Rule rule) {
    Machine roomy = machine;
    roomy.queue = static_cast<uint32_t>(workload.arrivals.size());
    Simulation run(roomy, workload);
    Reporter reporter(workload, machine.cost, promise);
    const uint64_t all = workload.arrivals.size();
    uint64_t gaps_in_all = 0;  // no more than this can come
    for (const Arrival& one : workload.arrivals) gaps_in_all += one.output - 1;

    uint64_t late_starts = 0, long_gaps = 0, gaps_seen = 0, broken = 0;
    const auto holds = [&](uint64_t gaps) {
        if (rule == Rule::distserve) return broken * 10 <= all;
        return late_starts * 2 <= all && long_gaps * 100 <= gaps;
    };
    bool hopeful = true;
    run.run([&](const Fate& fate, const std::vector<Nanos>& gaps) {
        const bool refused = fate.outcome == metrics::Outcome::refused;
        late_starts += refused || fate.queue > kMedianWait;
        broken += !reporter.kept(fate);
        gaps_seen += gaps.size();
        for (const Nanos gap : gaps) long_gaps += gap > promise.gap;
        hopeful = holds(gaps_in_all);
        return hopeful;
    });
    return hopeful && holds(gaps_seen);
}

double capacity(const Machine& machine, const Workload& workload, const Promise& promise, Rule rule, uint64_t seed) {
    Workload probe = workload;
    probe.cut(kProbeRequests);
    const auto keeps_at = [&](double rate) {
        probe.scale_to(rate, seed);
        return keeps(machine, probe, promise, rule);
    };
    double low = 0, high = 0;
    for (double rate = 1; high == 0 || low == 0; rate = high == 0 ? low * 2 : high / 2) {
        (keeps_at(rate) ? low : high) = rate;
        if (high != 0 && high < 1.0 / 86'400) return 0;
        if (low > kMostRate) return std::numeric_limits<double>::infinity();
    }
    while (high / low > 1 + kGrain) {
        const double middle = (low + high) / 2;
        (keeps_at(middle) ? low : high) = middle;
    }
    return low;
}

}  // namespace cadans::sim
