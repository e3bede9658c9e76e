#include "sim/capacity.h"

#include <algorithm>
#include <limits>

namespace cadans::sim {

bool keeps(const Play& play, const Workload& workload, const StepCost& cost, const Promise& promise, Rule rule) {
    Reporter reporter(workload, cost, promise);
    const uint64_t all = workload.arrivals.size();
    uint64_t gaps_in_all = 0;  // no more than this can come
    for (const Arrival& one : workload.arrivals) gaps_in_all += one.output - 1;

    uint64_t late_starts = 0, long_gaps = 0, gaps_seen = 0, broken = 0;
    const auto holds = [&](uint64_t gaps) {
        if (rule == Rule::distserve) return broken * 10 <= all;
        return late_starts * 2 <= all && long_gaps * 100 <= gaps;
    };
    bool hopeful = true;
    play([&](const Fate& fate, const std::vector<Nanos>& gaps) {
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

double largest(double first, double least, double most, const std::function<bool(double)>& holds) {
    double low = 0, high = 0;
    for (double tried = first; high == 0 || low == 0; tried = high == 0 ? low * 2 : high / 2) {
        (holds(tried) ? low : high) = tried;
        if (high != 0 && high < least) return 0;
        if (low > most) return std::numeric_limits<double>::infinity();
    }
    while (high / low > 1 + kGrain) {
        const double middle = (low + high) / 2;
        (holds(middle) ? low : high) = middle;
    }
    return low;
}

bool keeps(const Machine& machine, const Workload& workload, const Promise& promise, Rule rule) {
    Machine roomy = machine;
    roomy.queue = static_cast<uint32_t>(workload.arrivals.size());
    Simulation run(roomy, workload);
    return keeps([&run](const Simulation::OnEnd& on_end) { run.run(on_end); }, workload, machine.cost, promise, rule);
}

double capacity(const Machine& machine, const Workload& workload, const Promise& promise, Rule rule, uint64_t seed) {
    Workload probe = workload;
    probe.cut(kProbeRequests);
    return largest(1, kLeastRate, kMostRate, [&](double rate) {
        probe.scale_to(rate, seed);
        return keeps(machine, probe, promise, rule);
    });
}

}  // namespace cadans::sim
