#include "sim/report.h"

#include <algorithm>

namespace cadans::sim {
namespace {

Nanos predicted(const StepCost& cost, uint32_t first, uint32_t rows) {
    StepShape shape;
    cost.add(shape, first, rows, 1);
    return cost.predict(shape) * kNanosPerMicro;
}

}  // namespace

Nanos isolated_prefill(const StepCost& cost, uint32_t prompt) {
    constexpr uint32_t kRows = 2048;  // predictions are bounded to steps of a few thousand rows
    Nanos sum = 0;
    for (uint32_t first = 0; first < prompt; first += kRows)
        sum += predicted(cost, first, std::min(kRows, prompt - first));
    return sum;
}
Nanos isolated_decode(const StepCost& cost) { return predicted(cost, kIsolatedContext, 1); }

std::optional<Spread> spread_of(std::vector<Nanos>& values) {
    if (values.empty()) return std::nullopt;
    std::sort(values.begin(), values.end());
    const auto rank = [&](size_t percent) {
        return values[std::max<size_t>((values.size() * percent + 99) / 100, 1) - 1];
    };
    return Spread{rank(50), rank(90), rank(99), values.back()};
}

std::vector<Nanos> curve_of(const std::vector<Nanos>& ascending) {
    if (ascending.size() <= kCurvePoints) return ascending;
    std::vector<Nanos> curve;
    for (size_t i = 0; i < kCurvePoints; i++)
        curve.push_back(ascending[i * (ascending.size() - 1) / (kCurvePoints - 1)]);
    return curve;
}

bool Reporter::kept(const Fate& fate) const {
    if (fate.outcome != metrics::Outcome::length && fate.outcome != metrics::Outcome::stop) return false;
    const Nanos multiple = promise_.multiple * isolated_prefill(cost_, workload_.arrivals[fate.row].prompt);
    const Nanos first_word = promise_.ttft.value_or(
        promise_.ttft_scale == 1 ? multiple : static_cast<Nanos>(static_cast<double>(multiple) * promise_.ttft_scale));
    return fate.ttft.value_or(0) <= first_word && fate.per_token.value_or(0) <= promise_.gap;
}

void Reporter::add(const Fate& fate, const std::vector<Nanos>& gaps) {
    report_.requests++;
    last_end_ = std::max(last_end_, fate.done);
    if (fate.outcome == metrics::Outcome::refused) {
        report_.refused++;
        return;
    }
    report_.finished++;
    report_.output_tokens += fate.output;
    report_.cached_tokens += fate.cached;
    report_.preemptions += fate.preemptions;
    queues_.push_back(fate.queue);
    if (fate.ttft) ttfts_.push_back(*fate.ttft);
    for (const Nanos gap : gaps) stalls_ += gap > promise_.stall;
    gaps_.insert(gaps_.end(), gaps.begin(), gaps.end());
    kept_ += kept(fate);
}

Report Reporter::finish(const Simulation& run) {
    report_.ttft = spread_of(ttfts_);
    report_.gap = spread_of(gaps_);
    report_.ttft_curve = curve_of(ttfts_);
    report_.gap_curve = curve_of(gaps_);
    report_.queue = spread_of(queues_);
    report_.steps = run.steps();
    report_.span = last_end_ - workload_.arrivals.front().at;
    if (report_.output_tokens > 0)
        report_.stalls_per_1000 = static_cast<double>(stalls_) * 1000 / static_cast<double>(report_.output_tokens);
    report_.attained = static_cast<double>(kept_) / static_cast<double>(report_.requests);
    if (report_.span > 0) {
        report_.goodput_rps = static_cast<double>(kept_) * 1e9 / static_cast<double>(report_.span);
        report_.busy = static_cast<double>(run.busy()) / static_cast<double>(report_.span);
    }
    return report_;
}

Report simulate(const Machine& machine, const Workload& workload, const Promise& promise) {
    Simulation run(machine, workload);
    Reporter reporter(workload, machine.cost, promise);
    run.run([&](const Fate& fate, const std::vector<Nanos>& gaps) {
        reporter.add(fate, gaps);
        return true;
    });
    return reporter.finish(run);
}

}  // namespace cadans::sim
