#include "apps/asked_workload.h"

#include <fmt/format.h>

#include "apps/stderr_text.h"
#include "sim/load_spec.h"
#include "sim/trace_reader.h"

namespace cadans::apps {

Result<sim::Workload> asked_workload(const std::string& trace, const std::string& load, double rate,
                                     double untimed_rate, uint64_t seed) {
    auto made = trace.empty() ? sim::make_load(load, seed) : sim::read_trace(trace, seed);
    if (!made) return made;
    if (rate > 0) {
        const size_t requests = made->arrivals.size();
        if (static_cast<double>(requests) / rate > sim::kLongestSeconds)
            return bad_input(
                fmt::format("--rate: {} requests at {} a second take more than thirty years", requests, rate),
                "--rate");
        made->scale_to(rate, seed);
    } else if (!made->timed) {
        to_stderr("{} has no times: Poisson arrivals, {} a second (--rate)\n", made->name, untimed_rate);
        made->scale_to(untimed_rate, seed);
    }
    return made;
}

}  // namespace cadans::apps
