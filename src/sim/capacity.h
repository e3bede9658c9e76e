// How many requests a second a machine can promise something to: the largest rate that keeps a rule.
#pragma once

#include <cstdint>
#include <functional>

#include "sim/report.h"

namespace cadans::sim {

enum class Rule : uint8_t {
    sarathi,    ///< P99 of all gaps within Promise::gap, and P50 of the wait for the first step within 2 s
    distserve,  ///< 90 % of requests with first word and mean time per token as promised
};

/// Sources: Sarathi-Serve (Agrawal et al. 2024) section 5; DistServe (Zhong et al. 2024) section 6.
inline constexpr Nanos kMedianWait = 2 * kNanosPerSecond;
inline constexpr size_t kProbeRequests = 2048;      ///< rows of the workload that a probe plays, from its begin
inline constexpr double kGrain = 0.025;             ///< how near, relatively, the answer is
inline constexpr double kLeastRate = 1.0 / 86'400;  ///< one in a day
inline constexpr double kMostRate = 1e6;            ///< requests a second; nobody asks more of a machine

/// Plays a workload on whatever it is played on, and tells of every end.
using Play = std::function<void(const Simulation::OnEnd& on_end)>;

/// Whether the workload keeps the rule where `play` plays it; `cost` is what the promise goes by. The play is stopped
/// as soon as the answer is known.
bool keeps(const Play& play, const Workload& workload, const StepCost& cost, const Promise& promise, Rule rule);

/// The largest number that holds, to kGrain, by doubling or halving from `first` and then by bisection. 0 where none of
/// at least `least` does, infinity where more than `most` does.
double largest(double first, double least, double most, const std::function<bool(double)>& holds);

/// Whether the workload as it is keeps the rule. Nobody is refused: the queue holds them all. Ends as soon as the
/// answer is known.
bool keeps(const Machine& machine, const Workload& workload, const Promise& promise, Rule rule);

/// Bisection over time scaling. Requests a second; 0 where not even one in a day keeps the rule,
/// infinity where kMostRate does not break it: the workload is too small to.
double capacity(const Machine& machine, const Workload& workload, const Promise& promise, Rule rule, uint64_t seed);

}  // namespace cadans::sim
