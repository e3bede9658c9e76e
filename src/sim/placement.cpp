#include "sim/placement.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace cadans::sim {
namespace {

/// Mean work of a request on the promise's machine, as if alone: what one box serves at most, about.
double first_guess(const Workload& workload, const StepCost& cost) {
    double seconds = 0;
    for (const Arrival& one : workload.arrivals)
        seconds += static_cast<double>(isolated_prefill(cost, one.prompt) + one.output * isolated_decode(cost)) / 1e9;
    const double rate = static_cast<double>(workload.arrivals.size()) / std::max(seconds, 1e-9);
    return std::clamp(rate, kLeastRate, kMostRate);
}

double share_of(Nanos part, Nanos span) {
    return span <= 0 ? 0 : static_cast<double>(part) / static_cast<double>(span);
}

Nanos mean(Nanos sum, uint64_t count) { return count == 0 ? 0 : sum / static_cast<Nanos>(count); }

}  // namespace

std::string name_of(const Placement& placement, std::span<const Box> boxes) {
    const auto of = [&](size_t kind) { return boxes.size() > 1 ? " " + boxes[kind].name : std::string(); };
    if (!placement.split()) return fmt::format("{}{} shared", placement.shared, of(placement.kind));
    return fmt::format("{}{} prefill + {}{} decode", placement.prefill, of(placement.kind), placement.decode,
                       of(placement.decode_kind));
}

std::vector<Placement> placements_of(size_t kinds, uint32_t count) {
    std::vector<Placement> all;
    for (size_t kind = 0; kind < kinds; kind++) all.push_back({.shared = count, .kind = kind});
    for (size_t reads = 0; reads < kinds; reads++)
        for (size_t writes = 0; writes < kinds; writes++)
            for (uint32_t prefill = 1; prefill < count; prefill++)
                all.push_back({.prefill = prefill, .decode = count - prefill, .kind = reads, .decode_kind = writes});
    return all;
}

std::optional<double> price_of(const Placement& placement, std::span<const Box> boxes) {
    const std::optional<double>& first = boxes[placement.kind].price;
    const std::optional<double>& second = boxes[placement.decode_kind].price;
    if (!first || (placement.decode > 0 && !second)) return std::nullopt;
    return (placement.shared + placement.prefill) * *first + (placement.decode > 0 ? placement.decode * *second : 0);
}

Promise scaled(const Promise& promise, double scale) {
    const auto times = [scale](Nanos span) {
        return std::max<Nanos>(1, std::llround(std::min(static_cast<double>(span) * scale, 4e18)));
    };
    Promise out = promise;
    out.gap = times(promise.gap);
    out.stall = times(promise.stall);
    if (promise.ttft) out.ttft = times(*promise.ttft);
    out.ttft_scale = promise.ttft_scale * scale;
    return out;
}

Result<ClusterSpec> cluster_of(const Placement& placement, std::span<const Box> boxes, const Terms& terms,
                               uint32_t queue) {
    ClusterSpec spec{.members = {}, .link = terms.link, .kv = terms.kv};
    const auto add = [&](size_t kind, uint32_t count, Role role) -> Status {
        if (count == 0) return Ok{};
        auto machine = machine_of(terms.policy, boxes[kind].room, boxes[kind].fit, terms.promise.gap);
        if (!machine) return std::move(machine).error();
        machine->queue = queue;
        spec.members.insert(spec.members.end(), count, {*std::move(machine), role});
        return Ok{};
    };
    for (const Status& added :
         {add(placement.kind, placement.shared, Role::shared), add(placement.kind, placement.prefill, Role::prefill),
          add(placement.decode_kind, placement.decode, Role::decode)})
        if (!added) return added.error();
    return spec;
}

namespace {

/// With a queue for everybody of the load.
ClusterSpec roomy_cluster(const Placement& placement, std::span<const Box> boxes, const Terms& terms,
                          const Workload& load) {
    auto spec = cluster_of(placement, boxes, terms, static_cast<uint32_t>(load.arrivals.size()));
    check(spec.has_value(), "a search is for a policy that there is");
    return *std::move(spec);
}

}  // namespace

PlacementSearch::PlacementSearch(std::span<const Box> boxes, const Terms& terms, const Workload& workload)
    : boxes_(boxes), terms_(terms), workload_(workload), first_rate_(first_guess(workload, terms.cost)) {}

bool PlacementSearch::keeps_at(const Placement& placement, double rate, double scale) const {
    Terms terms = terms_;
    terms.promise = scaled(terms_.promise, scale);
    Workload load = workload_;
    load.scale_to(rate, terms.seed);
    Cluster cluster(roomy_cluster(placement, boxes_, terms, load), load);
    return keeps([&](const Simulation::OnEnd& on_end) { cluster.run(on_end); }, load, terms.cost, terms.promise,
                 Rule::distserve);
}

double PlacementSearch::goodput(const Placement& placement) const {
    return largest(first_rate_ * placement.boxes(), kLeastRate, kMostRate,
                   [&](double rate) { return keeps_at(placement, rate, 1); });
}

std::optional<double> PlacementSearch::tightest(const Placement& placement, double rate) const {
    const double tightness =
        largest(1, 1 / kMostScale, 1e6, [&](double x) { return keeps_at(placement, rate, 1 / x); });
    return tightness == 0 ? std::nullopt : std::optional(1 / tightness);
}

Service PlacementSearch::serve(const Placement& placement, double rate) const {
    Workload load = workload_;
    load.scale_to(rate, terms_.seed);
    Cluster cluster(roomy_cluster(placement, boxes_, terms_, load), load);
    Reporter reporter(load, terms_.cost, terms_.promise);
    std::vector<Nanos> ttfts, per_tokens;
    uint64_t kept = 0;
    Nanos waits = 0;
    cluster.run([&](const Fate& fate, const std::vector<Nanos>&) {
        kept += reporter.kept(fate);
        if (fate.ttft) ttfts.push_back(*fate.ttft);
        if (fate.per_token) per_tokens.push_back(*fate.per_token);
        if (fate.transfer > 0 && fate.output > 1) waits += fate.transfer / (fate.output - 1);
        return true;
    });
    Service out;
    out.rate = rate;
    out.attained = static_cast<double>(kept) / static_cast<double>(load.arrivals.size());
    out.ttft = spread_of(ttfts);
    out.per_token = spread_of(per_tokens);
    const Nanos span = cluster.now() - load.arrivals.front().at;
    for (const MemberFigures& one : cluster.figures()) {
        const double busy = share_of(one.busy, span);
        if (one.role != Role::decode) out.reading_busy += busy / (placement.shared + placement.prefill);
        if (one.role == Role::decode) out.writing_busy += busy / placement.decode;
        out.link_busy = std::max(out.link_busy, share_of(one.link_busy, span));
    }
    if (!placement.split()) out.writing_busy = out.reading_busy;
    out.exposed = mean(cluster.crossings().exposed, cluster.crossings().moved);
    out.held = mean(cluster.crossings().held, cluster.crossings().moved);
    out.wait_per_token = mean(waits, cluster.crossings().moved);
    return out;
}

}  // namespace cadans::sim
