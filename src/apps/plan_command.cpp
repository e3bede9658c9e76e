// cadans plan: should reading and writing live on boxes of their own? Every placement is simulated and priced.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <nlohmann/json.hpp>

#include "apps/asked_promise.h"
#include "apps/asked_workload.h"
#include "apps/commands.h"
#include "apps/progress.h"
#include "apps/settings.h"
#include "sim/advice.h"
#include "sim/placement.h"
#include "sim/worker_card.h"

namespace cadans::apps {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kAnyRate = 1;  ///< requests a second; the search chooses its own

double ms(Nanos span) { return std::round(static_cast<double>(span) / 1e3) / 1e3; }

Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

/// What stands the same for every placement.
struct Setting {
    const PlanSettings& settings;
    const sim::Fit& fit;
    const sim::Workload& workload;
    const std::vector<sim::Box>& boxes;
    const sim::Terms& terms;
};

/// All placements on as many boxes.
struct Group {
    std::vector<sim::Found> found;
    double rate = 0;  ///< at which the tightest promise was sought; 0: none was
};

Result<std::vector<sim::Box>> asked_boxes(const PlanSettings& s, const sim::Fit& fit, const sim::KvShape& kv) {
    std::vector<sim::Box> boxes;
    for (const std::string& source : s.boxes) {
        auto box = sim::read_card(source, fit, s.room, kv, fmt::format("box {}", boxes.size() + 1));
        if (!box) return box.error();
        const auto same = [&](const sim::Box& other) { return other.name == box->name; };
        if (std::any_of(boxes.begin(), boxes.end(), same))
            return bad_input(fmt::format("--box: two kinds are called '{}'; give each a name", box->name), "--box");
        boxes.push_back(*std::move(box));
    }
    if (boxes.empty()) boxes.push_back({"box", fit, s.room});
    return boxes;
}

/// The rate at which placements are compared for tightness: the one asked for, else half of what sharing serves.
double rate_to_compare(const PlanSettings& s, const std::vector<sim::Found>& found) {
    if (s.rate > 0) return s.rate;
    double best = 0;
    for (const sim::Found& one : found)
        if (!one.placement.split() && std::isfinite(one.goodput)) best = std::max(best, one.goodput);
    return best / 2;
}

std::vector<Group> search(const Setting& in) {
    const sim::PlacementSearch search(in.boxes, in.terms, in.workload);
    std::vector<std::vector<sim::Placement>> all;
    size_t total = 0, done = 0;
    for (const uint32_t count : in.settings.counts) {
        all.push_back(sim::placements_of(in.boxes.size(), count));
        total += 2 * all.back().size();
    }
    Progress progress("cadans plan:");
    std::vector<Group> groups;
    for (const auto& placements : all) {
        Group group;
        for (const sim::Placement& placement : placements) {
            progress.show(done++, total, name_of(placement, in.boxes));
            sim::Found found{
                .placement = placement, .goodput = search.goodput(placement), .at_goodput = {}, .tightest = {}};
            const bool some = found.goodput > 0 && std::isfinite(found.goodput);
            found.at_goodput = search.serve(placement, some ? found.goodput : search.low_rate());
            group.found.push_back(std::move(found));
        }
        group.rate = rate_to_compare(in.settings, group.found);
        for (sim::Found& found : group.found) {
            progress.show(done++, total, name_of(found.placement, in.boxes) + ", tightest promise");
            if (group.rate > 0) found.tightest = search.tightest(found.placement, group.rate);
        }
        groups.push_back(std::move(group));
    }
    return groups;
}

Json record_of(const Setting& in, const Group& group, const sim::Found& found) {
    const sim::Placement& p = found.placement;
    const sim::Service& at = found.at_goodput;
    const auto price = price_of(p, in.boxes);
    const auto quantiles = [](const std::optional<sim::Spread>& spread) {
        return spread ? Json{{"p50", ms(spread->p50)}, {"p90", ms(spread->p90)}} : Json(nullptr);
    };
    return {{"placement", name_of(p, in.boxes)},
            {"shared", p.shared},
            {"prefill", p.prefill},
            {"decode", p.decode},
            {"box", in.boxes[p.kind].name},
            {"decode_box", p.split() ? Json(in.boxes[p.decode_kind].name) : Json(nullptr)},
            {"goodput_rps", number(found.goodput)},
            {"goodput_rps_per_box", number(found.goodput / p.boxes())},
            {"price", price ? Json(*price) : Json(nullptr)},
            {"goodput_rps_per_price", price && *price > 0 ? number(found.goodput / *price) : Json(nullptr)},
            {"tightest_slo", found.tightest ? Json(*found.tightest) : Json(nullptr)},
            {"tightest_at_rps", group.rate > 0 ? Json(group.rate) : Json(nullptr)},
            {"at_rps", at.rate},
            {"slo_attained", at.attained},
            {"ttft_ms", quantiles(at.ttft)},
            {"per_token_ms", quantiles(at.per_token)},
            {"reading_busy", at.reading_busy},
            {"writing_busy", at.writing_busy},
            {"link_busy", at.link_busy},
            {"exposed_ms", ms(at.exposed)},
            {"held_ms", ms(at.held)}};
}

Json document_of(const Setting& in, const std::vector<Group>& groups) {
    Json plans = Json::array();
    for (const Group& group : groups) {
        Json placements = Json::array();
        for (const sim::Found& found : group.found) placements.push_back(record_of(in, group, found));
        const sim::Found* choice = sim::choice_of(group.found);
        plans.push_back({{"boxes", group.found.front().placement.boxes()},
                         {"choice", choice == nullptr ? Json(nullptr) : Json(name_of(choice->placement, in.boxes))},
                         {"advice", sim::advice(group.found, in.boxes, in.terms)},
                         {"placements", std::move(placements)}});
    }
    return {{"trace", in.workload.name},
            {"requests", in.workload.arrivals.size()},
            {"seed", in.settings.seed},
            {"fit", in.fit.name},
            {"policy", in.terms.policy},
            {"slo_ms", ms(in.terms.promise.gap)},
            {"slo_ttft_ms", in.terms.promise.ttft ? Json(ms(*in.terms.promise.ttft)) : Json(nullptr)},
            {"link_bits_per_second", in.terms.link.bytes_per_second * 8},
            {"link_latency_ms", ms(in.terms.link.latency)},
            {"kv_token_bytes", in.terms.kv.token_bytes},
            {"layers", in.terms.kv.layers},
            {"plans", std::move(plans)}};
}

std::string rate_cell(double rate) {
    if (!std::isfinite(rate)) return "any";
    return rate == 0 ? "none" : fmt::format("{:.4f}", rate);
}

void print_table(const Setting& in, const std::vector<Group>& groups) {
    const sim::Promise& promise = in.terms.promise;
    constexpr uint32_t kPrompt = 1024;
    const double crossing = kPrompt * static_cast<double>(in.terms.kv.token_bytes) / in.terms.link.bytes_per_second;
    fmt::print("{}: {} requests; {}; {}\n", in.workload.name, in.workload.arrivals.size(), in.fit.name,
               in.terms.policy);
    fmt::print("promise to 90 % of requests: {} a token on the average, first token within {}\n",
               format_duration(promise.gap),
               promise.ttft ? format_duration(*promise.ttft) : fmt::format("{} x its own prefill", promise.multiple));
    fmt::print("link: {}, {} bytes a token in {} layers: a prompt of {} tokens crosses in {} and is read in {}\n",
               sim::format_link_speed(in.terms.link.bytes_per_second), in.terms.kv.token_bytes, in.terms.kv.layers,
               kPrompt, format_duration(std::llround(crossing * 1e9)),
               format_duration(sim::isolated_prefill(in.fit.cost, kPrompt)));
    size_t width = 9;
    bool priced = true;
    for (const Group& group : groups)
        for (const sim::Found& one : group.found) width = std::max(width, name_of(one.placement, in.boxes).size());
    for (const sim::Box& box : in.boxes) priced = priced && box.price.value_or(0) > 0;
    for (const Group& group : groups) {
        fmt::print("\n{:{}} {:>9} {:>9}{} {:>12} {:>6} {:>6} {:>6} {:>9}\n", "placement", width, "good/s", "a box",
                   priced ? "  per 1000" : "",
                   group.rate > 0 ? fmt::format("at {:.3g}/s", group.rate) : std::string("tightest"), "reads", "writes",
                   "link", "exposed");
        for (const sim::Found& one : group.found) {
            const sim::Placement& p = one.placement;
            const sim::Service& at = one.at_goodput;
            const auto price = price_of(p, in.boxes);
            fmt::print("{:{}} {:>9} {:>9}{} {:>12} {:>5.0f}% {:>5.0f}% {:>6} {:>9}\n", name_of(p, in.boxes), width,
                       rate_cell(one.goodput), rate_cell(one.goodput / p.boxes()),
                       priced ? fmt::format(" {:>9}", rate_cell(one.goodput / *price * 1000)) : "",
                       one.tightest ? fmt::format("SLO x {:.2f}", *one.tightest) : std::string("-"),
                       100 * at.reading_busy, 100 * at.writing_busy,
                       p.split() ? fmt::format("{:.0f}%", 100 * at.link_busy) : std::string("-"),
                       p.split() ? format_duration(at.exposed) : std::string("-"));
        }
        fmt::print("{}\n", sim::advice(group.found, in.boxes, in.terms));
    }
}

}  // namespace

int plan_command(const PlanSettings& s) {
    auto workload = asked_workload(s.trace, s.load, kAnyRate, kAnyRate, s.seed);
    if (!workload) return fail(workload.error());
    workload->cut(s.requests);
    const auto fit = asked_fit(s.fit, *workload, s.seed);
    if (!fit) return fail(fit.error());
    const auto promise = asked_promise(s.slo, s.slo_ttft_ms, fit->cost);
    if (!promise) return fail(promise.error());
    if (const auto policy = sim::policy_named(s.policy); !policy) return fail(policy.error());
    const auto link = sim::parse_link_speed(s.link);
    if (!link) return fail(bad_input(fmt::format("--link: {}", link.error().message), "--link"));
    sim::Terms terms{.policy = s.policy, .promise = *promise, .cost = fit->cost, .seed = s.seed};
    terms.link = {*link, std::llround(s.link_latency_ms * 1e6)};
    terms.kv = fit->kv.value_or(sim::KvShape{});
    if (s.kv_bytes > 0) terms.kv.token_bytes = s.kv_bytes;
    if (s.layers > 0) terms.kv.layers = s.layers;
    const auto boxes = asked_boxes(s, *fit, terms.kv);
    if (!boxes) return fail(boxes.error());

    const Setting in{s, *fit, *workload, *boxes, terms};
    const std::vector<Group> groups = search(in);
    if (s.json) {
        std::cout << document_of(in, groups).dump(2, ' ', false, Json::error_handler_t::replace) << '\n';
    } else {
        print_table(in, groups);
    }
    return 0;
}

}  // namespace cadans::apps
