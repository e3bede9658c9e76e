// cadans bench serve: what the clients of a running server feel under a workload, or of two, side by side.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <nlohmann/json.hpp>

#include "apps/asked_workload.h"
#include "apps/commands.h"
#include "apps/progress.h"
#include "apps/settings.h"
#include "apps/stderr_text.h"
#include "base/file.h"
#include "load/load_report.h"
#include "load/open_loop.h"
#include "sim/plot.h"

namespace cadans::apps {
namespace {

using Json = nlohmann::ordered_json;

/// What was asked for, as far as it begins within the duration.
Result<sim::Workload> workload_of(const BenchServeSettings& s) {
    constexpr double kUntimedRate = 0.5;
    auto made = asked_workload(s.trace, s.load, s.rate, kUntimedRate, s.seed);
    if (!made) return made;
    if (s.duration > 0) {
        const Nanos end = made->arrivals.front().at + std::llround(s.duration * 1e9);
        const auto first_late =
            std::ranges::find_if(made->arrivals, [&](const sim::Arrival& a) { return a.at >= end; });
        made->cut(static_cast<size_t>(first_late - made->arrivals.begin()));
    }
    for (sim::Arrival& arrival : made->arrivals)
        if (s.most_prompt > 0) arrival.prompt = std::min(arrival.prompt, s.most_prompt);
    return made;
}

struct Line {
    load::Peer peer;
    load::LoadReport report;
    bool realtime = false;
};

double ms(Nanos span) { return std::round(static_cast<double>(span) / 1e3) / 1e3; }

Json spread_json(const std::optional<sim::Spread>& spread) {
    if (!spread) return nullptr;
    return {{"p50", ms(spread->p50)}, {"p90", ms(spread->p90)}, {"p99", ms(spread->p99)}, {"max", ms(spread->max)}};
}

Json record_of(const BenchServeSettings& s, const sim::Workload& workload, const Line& line) {
    const load::LoadReport& r = line.report;
    Json rates = nullptr;
    if (r.output_tokens_per_second)
        rates = {{"p50", r.output_tokens_per_second->p50},
                 {"p10", r.output_tokens_per_second->p10},
                 {"p1", r.output_tokens_per_second->p1},
                 {"min", r.output_tokens_per_second->min}};
    Json errors = Json::object();
    for (const auto& [what, count] : r.errors) errors[what] = count;
    return {{"url", line.peer.address},
            {"dialect", load::name(line.peer.dialect)},
            {"model", line.peer.model},
            {"workload", workload.name},
            {"seed", s.seed},
            {"rate_rps", workload.rate()},
            {"tokens_per_word", line.peer.tokens_per_word},
            {"requests", r.requests},
            {"finished", r.finished},
            {"refused", r.refused},
            {"failed", r.failed},
            {"errors", errors},
            {"prompt_tokens", r.prompt_tokens},
            {"output_tokens", r.output_tokens},
            {"prompt_ms", spread_json(r.prompt)},
            {"ttft_ms", spread_json(r.ttft)},
            {"gap_ms", spread_json(r.gap)},
            {"output_tokens_per_second", rates},
            {"stall_ms", s.gap_ms},
            {"stalls_per_1000", r.stalls_per_1000},
            {"finished_rps", r.finished_per_second},
            {"machine_output_tokens_per_second", r.tokens_per_second},
            {"late_ms", spread_json(r.late)},
            {"realtime", line.realtime}};
}

std::string cell(const std::optional<sim::Spread>& spread, Nanos sim::Spread::*which) {
    return spread ? format_duration((*spread).*which) : "-";
}

void print_row(const std::string& name, const std::vector<std::string>& cells) {
    fmt::print("{:34}", name);
    for (const std::string& each : cells) fmt::print(" {:>24}", each);
    fmt::print("\n");
}

void print_table(const BenchServeSettings& s, const sim::Workload& workload, const std::vector<Line>& lines) {
    fmt::print("{}: {} requests, {:.3g} a second\n\n", workload.name, workload.arrivals.size(), workload.rate());
    const auto row = [&](const std::string& name, const auto& value) {
        std::vector<std::string> cells;
        for (const Line& line : lines) cells.push_back(value(line));
        print_row(name, cells);
    };
    const auto spread = [&](const std::string& name, const std::optional<sim::Spread> load::LoadReport::*which) {
        row(name + ", half within", [&](const Line& l) { return cell(l.report.*which, &sim::Spread::p50); });
        row(name + ", 99 % within", [&](const Line& l) { return cell(l.report.*which, &sim::Spread::p99); });
        row(name + ", longest", [&](const Line& l) { return cell(l.report.*which, &sim::Spread::max); });
    };
    row("server", [](const Line& l) { return l.peer.url.authority(); });
    row("model", [](const Line& l) { return fmt::format("{:.24}", l.peer.model); });
    row("finished, refused, failed",
        [](const Line& l) { return fmt::format("{}, {}, {}", l.report.finished, l.report.refused, l.report.failed); });
    spread("first word", &load::LoadReport::ttft);
    spread("gap between words", &load::LoadReport::gap);
    row(fmt::format("gaps over {} ms per 1,000 tokens", s.gap_ms),
        [](const Line& l) { return fmt::format("{:.2f}", l.report.stalls_per_1000); });
    row("answer tokens/s, half at most", [](const Line& l) {
        return l.report.output_tokens_per_second ? fmt::format("{:.1f}", l.report.output_tokens_per_second->p50) : "-";
    });
    spread("reading (the server says)", &load::LoadReport::prompt);
    row("prompt tokens read", [](const Line& l) { return std::to_string(l.report.prompt_tokens); });
    row("answer tokens", [](const Line& l) { return std::to_string(l.report.output_tokens); });
    row("requests/s finished", [](const Line& l) { return fmt::format("{:.3f}", l.report.finished_per_second); });
    row("sent late, at most", [](const Line& l) { return cell(l.report.late, &sim::Spread::max); });
    for (const Line& line : lines)
        for (const auto& [what, count] : line.report.errors)
            fmt::print("{}: {} x {}\n", line.peer.address, count, what);
}

}  // namespace

int bench_serve_command(const BenchServeSettings& s) {
    const auto workload = workload_of(s);
    if (!workload) return fail(workload.error());
    std::vector<load::Peer> peers;  // all are met before any is loaded
    for (const std::string& url : s.urls) {
        auto peer = load::meet(url, {.dialect = s.dialect, .model = s.model, .api_key = s.api_key});
        if (!peer) return fail(peer.error());
        peers.push_back(*std::move(peer));
    }
    std::vector<Line> lines;
    for (const load::Peer& peer : peers) {
        Progress bar("asking");
        const load::Played played =
            load::run_load(peer, *workload, {.seed = s.seed, .most_output = s.most_output, .realtime = s.realtime},
                           [&](size_t ended) { bar.show(ended, workload->arrivals.size(), peer.url.authority()); });
        bar.clear();
        if (s.realtime && !played.realtime)
            to_stderr("cadans: stop-watches could not go before other work: that needs root or CAP_SYS_NICE\n");
        lines.push_back({peer, load::report_of(played, std::llround(s.gap_ms * 1e6)), played.realtime});
    }
    if (!s.plot.empty()) {
        std::vector<sim::Curve> curves;
        for (const Line& line : lines)
            curves.push_back({line.peer.url.authority(), line.report.ttft_curve, line.report.gap_curve});
        const std::string title = fmt::format("{}, {:.3g} requests a second", workload->name, workload->rate());
        if (Status drawn = write_whole(s.plot, sim::plot_svg(title, curves)); !drawn) return fail(drawn.error());
    }
    if (s.json) {
        Json all = Json::array();
        for (const Line& line : lines) all.push_back(record_of(s, *workload, line));
        std::cout << all.dump(2) << '\n';
    } else {
        print_table(s, *workload, lines);
    }
    const bool all_empty = std::ranges::all_of(lines, [](const Line& line) { return line.report.finished == 0; });
    return all_empty ? 1 : 0;
}

}  // namespace cadans::apps
