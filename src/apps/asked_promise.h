// What --fit says that steps cost, and what --slo and --slo-ttft promise by it.
#pragma once

#include <string>

#include "base/result.h"
#include "sim/machine.h"
#include "sim/report.h"
#include "sim/workload.h"

namespace cadans::apps {

/// The cost table that `file` holds (a record of a server: fitted to its steps); where `file` is empty that of a
/// recorded workload, else the built-in one. Errors: bad_input.
Result<sim::Fit> asked_fit(const std::string& file, const sim::Workload& workload, uint64_t seed);

/// `slo`: strict, relaxed, or milliseconds between tokens. `slo_ttft_ms`: to the first token; 0: a multiple of the
/// request's own prefill. A longer gap than promised is a stall. Errors: bad_input.
Result<sim::Promise> asked_promise(const std::string& slo, double slo_ttft_ms, const StepCost& cost);

}  // namespace cadans::apps
