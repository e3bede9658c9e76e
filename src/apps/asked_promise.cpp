#include "apps/asked_promise.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "engine/cost_fit.h"
#include "sim/replay.h"
#include "sim/tape_reader.h"

namespace cadans::apps {
namespace {

constexpr size_t kFitSteps = 500;

/// What steps took of what that cost says, in 1/1024.
sim::Unsteadiness unsteadiness_of(const std::vector<StepSample>& steps, const StepCost& cost, uint64_t seed) {
    sim::Unsteadiness out{.reading = {}, .writing = {}, .seed = seed};
    for (const StepSample& step : steps) {
        const double predicted = std::max(1.0, static_cast<double>(cost.predict(step.shape) * kNanosPerMicro));
        const double factor = std::min(static_cast<double>(step.time) / predicted, 1000.0);
        (step.shape.prompt_context > 0 ? out.reading : out.writing)
            .push_back(static_cast<uint32_t>(std::llround(factor * StepCost::kWhole)));
    }
    return out;
}

/// What steps cost, fitted to those that a server's record holds, evenly from all of it.
Result<sim::Fit> fit_of_record(const std::string& path, uint64_t seed) {
    const auto replay = sim::replay(path);
    if (!replay) return replay.error();
    const std::vector<StepSample>& steps = replay->steps;
    if (steps.empty()) return bad_input(fmt::format("{}: the record has no steps to fit a cost to", path), path);
    std::vector<StepSample> some;
    const size_t count = std::min(steps.size(), kFitSteps);
    for (size_t i = 0; i < count; i++) some.push_back(steps[i * steps.size() / count]);
    const StepCost cost = engine::fit_step_cost(some, replay->cost).cost;
    return sim::Fit{fmt::format("fitted to the steps of {}", path), cost, unsteadiness_of(steps, cost, seed)};
}

}  // namespace

Result<sim::Fit> asked_fit(const std::string& file, const sim::Workload& workload, uint64_t seed) {
    if (!file.empty()) return sim::is_tape(file) ? fit_of_record(file, seed) : sim::read_fit(file);
    if (!workload.house) return sim::built_in_fit();
    if (workload.house->costs.size() != 1 || workload.house->costs.front() == StepCost{})
        return bad_input(fmt::format("{} does not say what the steps of one model cost; give --fit", workload.name));
    return sim::Fit{"as the server believed when the record began", workload.house->costs.front()};
}

Result<sim::Promise> asked_promise(const std::string& slo, double slo_ttft_ms, const StepCost& cost) {
    sim::Promise promise;
    if (slo == "strict" || slo == "relaxed") {
        promise.multiple = slo == "strict" ? 5 : 25;
        promise.gap = promise.multiple * sim::isolated_decode(cost);
    } else {
        char* end = nullptr;
        const double ms = std::strtod(slo.c_str(), &end);
        if (end == slo.c_str() || *end != 0 || !(ms > 0) || ms > 1e9)
            return bad_input(fmt::format("--slo is '{}'; write strict, relaxed or milliseconds", slo), "--slo");
        promise.gap = std::llround(ms * 1e6);
    }
    if (slo_ttft_ms > 0) promise.ttft = std::llround(slo_ttft_ms * 1e6);
    promise.stall = promise.gap;
    return promise;
}

}  // namespace cadans::apps
