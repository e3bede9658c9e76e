// The workload that --trace, --load, --rate and --seed ask for.
#pragma once

#include <string>

#include "base/result.h"
#include "sim/workload.h"

namespace cadans::apps {

/// `trace` is a file, or empty: then `load` is a spec. `rate`: mean requests a second, 0 for the workload's own;
/// lengths without times come at `untimed_rate`, and stderr says so. Errors: bad_input, also for a rate at which the
/// workload would last longer than sim::kLongestSeconds.
Result<sim::Workload> asked_workload(const std::string& trace, const std::string& load, double rate,
                                     double untimed_rate, uint64_t seed);

}  // namespace cadans::apps
