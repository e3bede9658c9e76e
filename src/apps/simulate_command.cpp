// cadans simulate: how a day would have gone on this machine, under each policy.
#include <fmt/format.h>

#include <cmath>
#include <iostream>
#include <nlohmann/json.hpp>

#include "apps/asked_promise.h"
#include "apps/asked_workload.h"
#include "apps/commands.h"
#include "apps/settings.h"
#include "apps/stderr_text.h"
#include "base/file.h"
#include "sim/capacity.h"
#include "sim/machine.h"
#include "sim/plot.h"
#include "sim/replay.h"
#include "sim/report.h"

namespace cadans::apps {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kUntimedRate = 0.05;  ///< requests a second of lengths without times, where none is given

double ms(Nanos span) { return std::round(static_cast<double>(span) / 1e3) / 1e3; }

Json error_json(const sim::StepError& steps) {
    return {{"steps", steps.steps},
            {"measured_of_predicted", steps.of_predicted},
            {"error_p50", steps.p50},
            {"error_p90", steps.p90}};
}

void print_error(std::string_view what, const sim::StepError& steps) {
    if (steps.steps == 0) return;
    fmt::print("{} steps that {} took {:.2f} of what was predicted; half were off by {:.1f}% or less, 90% by {:.1f}%\n",
               steps.steps, what, steps.of_predicted, 100 * steps.p50, 100 * steps.p90);
}

Json spread_json(const std::optional<sim::Spread>& spread) {
    if (!spread) return {{"p50", nullptr}, {"p90", nullptr}, {"p99", nullptr}, {"max", nullptr}};
    return {{"p50", ms(spread->p50)}, {"p90", ms(spread->p90)}, {"p99", ms(spread->p99)}, {"max", ms(spread->max)}};
}

/// What stands the same in every record.
struct Setting {
    const SimulateSettings& settings;
    const sim::Fit& fit;
    const sim::Workload& workload;
    const sim::Promise& promise;
};

struct Line {
    std::string policy;
    sim::Report report;
    uint32_t prefill_chunk;  ///< what a policy with a fixed one was given
    std::optional<double> capacity;
};

Json record_of(const Setting& in, const Line& line) {
    const sim::Report& r = line.report;
    Json record = {{"policy", line.policy},
                   {"trace", in.workload.name},
                   {"seed", in.settings.seed},
                   {"fit", in.fit.name},
                   {"rate_rps", in.workload.rate()},
                   {"slo_ms", ms(in.promise.gap)},
                   {"slo_ttft_ms", in.promise.ttft ? Json(ms(*in.promise.ttft)) : Json(nullptr)},
                   {"stall_ms", ms(in.promise.stall)},
                   {"prefill_chunk", line.prefill_chunk},
                   {"requests", r.requests},
                   {"finished", r.finished},
                   {"refused", r.refused},
                   {"ttft_ms", spread_json(r.ttft)},
                   {"gap_ms", spread_json(r.gap)},
                   {"queue_ms", spread_json(r.queue)},
                   {"stalls_per_1000", r.stalls_per_1000},
                   {"goodput_rps", r.goodput_rps},
                   {"slo_attained", r.attained},
                   {"output_tokens", r.output_tokens},
                   {"cached_tokens", r.cached_tokens},
                   {"preemptions", r.preemptions},
                   {"steps", r.steps},
                   {"busy", r.busy}};
    if (line.capacity) {
        record["capacity_rps"] = std::isfinite(*line.capacity) ? Json(*line.capacity) : Json(nullptr);
        record["rule"] = in.settings.rule;
        record["capacity_requests"] = std::min(in.workload.arrivals.size(), sim::kProbeRequests);
    }
    return record;
}

std::string cell(const std::optional<sim::Spread>& spread, Nanos sim::Spread::*which) {
    return spread ? format_duration((*spread).*which) : "-";
}

std::string capacity_cell(double capacity) {
    return std::isfinite(capacity) ? fmt::format("  {:.4f}/s", capacity) : "  no rate breaks the rule";
}

void print_table(const Setting& in, const std::vector<Line>& lines) {
    fmt::print("{}: {} requests, {:.3g} a second; {}\n", in.workload.name, in.workload.arrivals.size(),
               in.workload.rate(), in.fit.name);
    fmt::print(
        "promise: {} between words, first word within {}; a stall is a gap over {}\n\n",
        format_duration(in.promise.gap),
        in.promise.ttft ? format_duration(*in.promise.ttft) : fmt::format("{} x its own prefill", in.promise.multiple),
        format_duration(in.promise.stall));
    fmt::print("{:14} {:>8} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>7}{}\n", "policy", "refused", "ttft p50",
               "ttft p99", "gap p50", "gap p99", "gap max", "stalls/1k", "good/s", "kept",
               in.settings.capacity ? "  capacity" : "");
    for (const Line& line : lines) {
        const sim::Report& r = line.report;
        fmt::print("{:14} {:>8} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9.2f} {:>9.4f} {:>6.1f}%{}\n", line.policy, r.refused,
                   cell(r.ttft, &sim::Spread::p50), cell(r.ttft, &sim::Spread::p99), cell(r.gap, &sim::Spread::p50),
                   cell(r.gap, &sim::Spread::p99), cell(r.gap, &sim::Spread::max), r.stalls_per_1000, r.goodput_rps,
                   100 * r.attained, line.capacity ? capacity_cell(*line.capacity) : "");
    }
    if (in.settings.capacity) fmt::print("\ncapacity: the largest rate that keeps the {} rule\n", in.settings.rule);
}

Status draw(const Setting& in, const std::vector<Line>& lines) {
    std::vector<sim::Curve> curves;
    for (const Line& line : lines) curves.push_back({line.policy, line.report.ttft_curve, line.report.gap_curve});
    return write_whole(
        in.settings.plot,
        sim::plot_svg(fmt::format("{}, {:.3g} requests a second", in.workload.name, in.workload.rate()), curves));
}

int replay_here(const SimulateSettings& s) {
    const auto replay = sim::replay(s.replay);
    if (!replay) return fail(replay.error());
    const sim::Replay& r = *replay;
    if (s.json) {
        const Json record = {{"policy", r.policy},
                             {"trace", s.replay},
                             {"requests", r.requests},
                             {"plans", r.plans},
                             {"plans_matched", r.matched},
                             {"first_difference", r.first_difference ? Json(*r.first_difference) : Json(nullptr)},
                             {"turns", r.turns},
                             {"end", r.end},
                             {"output_tokens", r.output_tokens},
                             {"reading_steps", error_json(r.reading)},
                             {"writing_steps", error_json(r.writing)},
                             {"between_steps_ms", spread_json(r.between)},
                             {"ttft_ms", spread_json(r.ttft)},
                             {"gap_ms", spread_json(r.gap)}};
        std::cout << Json::array({record}).dump(2) << '\n';
    } else {
        fmt::print("{}: {} requests under {}, {} turns; the record ended: {}\n", s.replay, r.requests, r.policy,
                   r.turns, r.end);
        fmt::print("{} plans, {} planned again exactly{}\n", r.plans, r.matched,
                   r.first_difference ? fmt::format("; turn {} became another", *r.first_difference) : "");
        fmt::print("engine's time to first token p50 {}, p99 {}; gap p50 {}, p99 {}, max {}\n",
                   cell(r.ttft, &sim::Spread::p50), cell(r.ttft, &sim::Spread::p99), cell(r.gap, &sim::Spread::p50),
                   cell(r.gap, &sim::Spread::p99), cell(r.gap, &sim::Spread::max));
        print_error("read prompts", r.reading);
        print_error("only wrote", r.writing);
    }
    return r.first_difference ? 1 : 0;
}

/// A server's record brings its machine along.
Result<sim::Machine> machine_for(const SimulateSettings& s, const sim::Workload& workload, const std::string& policy,
                                 const sim::Fit& fit, Nanos gap) {
    if (!workload.house) return sim::machine_of(policy, s.room, fit, gap);
    return sim::recorded_machine(policy, *workload.house, fit, s.gap_ms > 0 ? std::optional(gap) : std::nullopt);
}

}  // namespace

int simulate_command(const SimulateSettings& s) {
    if (!s.replay.empty()) return replay_here(s);
    const auto workload = asked_workload(s.trace, s.load, s.rate, kUntimedRate, s.seed);
    if (!workload) return fail(workload.error());
    const auto fit = asked_fit(s.fit, *workload, s.seed);
    if (!fit) return fail(fit.error());
    auto promise = asked_promise(s.slo, s.slo_ttft_ms, fit->cost);
    if (!promise) return fail(promise.error());
    if (s.gap_ms > 0) promise->stall = std::llround(s.gap_ms * 1e6);
    std::vector<Line> lines;
    for (const std::string& policy : s.policies.empty() ? sim::policy_names() : s.policies) {
        const auto machine = machine_for(s, *workload, policy, *fit, promise->stall);
        if (!machine) return fail(machine.error());
        Line line{policy, sim::simulate(*machine, *workload, *promise), machine->house.limits.prefill_chunk,
                  std::nullopt};
        if (s.capacity) {
            const auto rule = s.rule == "sarathi" ? sim::Rule::sarathi : sim::Rule::distserve;
            line.capacity = sim::capacity(*machine, *workload, *promise, rule, s.seed);
        }
        lines.push_back(std::move(line));
    }
    const Setting in{s, *fit, *workload, *promise};
    if (!s.plot.empty())
        if (Status drawn = draw(in, lines); !drawn) return fail(drawn.error());
    if (s.json) {
        Json all = Json::array();
        for (const Line& line : lines) all.push_back(record_of(in, line));
        std::cout << all.dump(2) << '\n';
    } else {
        print_table(in, lines);
    }
    return 0;
}

}  // namespace cadans::apps
