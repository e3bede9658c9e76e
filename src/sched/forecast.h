// Who waits how long: the present line worked off at predicted speed.
#pragma once

#include <vector>

#include "flow/forecast.h"
#include "sched/policy.h"

namespace cadans::sched {

/// Time of a step of nothing but a row for everyone who writes now.
Micros time_to_write(const View& view) noexcept;

/// Fills `out` with a line for each sequence that reads its prompt or waits, in the order in which the policy serves
/// them. Prompts have what the words of the others leave of the gap. Without a cost table all times are 0.
/// Cost: sorting; no allocation once `out` has grown.
void forecast(const View& view, const Policy& policy, std::vector<Forecast>& out);

}  // namespace cadans::sched
