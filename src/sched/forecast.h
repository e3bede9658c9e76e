// Who waits how long: the present line worked off at predicted speed.
#pragma once

#include <span>

#include "flow/forecast.h"
#include "flow/model_facts.h"
#include "sched/policy.h"

namespace cadans::sched {

/// Time of a step of nothing but a row for everyone who writes now.
Micros time_to_write(const View& view) noexcept;

/// Fills `out`: a line for each sequence that reads its prompt or waits, in the order in which the policy serves them,
/// and what newcomers with prompts of 32, 64, 128 ... tokens, up to their model's context, would be told. Prompts have
/// what the words of the others leave of the gap. Without a cost table all times are 0.
/// Cost: sorting, and a search for each newcomer; no allocation once `out` has grown.
void forecast(const View& view, std::span<const ModelFacts> models, const Policy& policy, Outlook& out);

}  // namespace cadans::sched
