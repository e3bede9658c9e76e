#include "metrics/receipt.h"

#include <algorithm>
#include <span>
#include <vector>

#include "base/check.h"

namespace cadans::metrics {
namespace {

using Rows = std::array<uint32_t, kPhases>;

constexpr uint32_t kPrefill = static_cast<uint32_t>(Phase::prefill);
constexpr uint32_t kDecode = static_cast<uint32_t>(Phase::decode);
constexpr uint32_t kVerify = static_cast<uint32_t>(Phase::verify);

/// Takes from `gaps` (ascending, disjoint) what `spans` (ascending by begin) cover; tells each piece.
/// A span that lies wholly elsewhere, or is empty or reversed, takes nothing.
template <class Taken>
void take(std::vector<Interval>& gaps, const std::vector<Interval>& spans, Taken&& taken) {
    std::vector<Interval> left;
    left.reserve(gaps.size() + spans.size());
    size_t at = 0;
    for (const Interval& gap : gaps) {
        Nanos from = gap.begin;
        for (; at < spans.size() && spans[at].begin < gap.end; at++) {
            const Nanos begin = std::max(from, spans[at].begin);
            const Nanos end = std::min(gap.end, spans[at].end);
            if (begin < end) {
                if (from < begin) left.push_back({from, begin});
                taken(at, Interval{begin, end});
                from = end;
            }
            if (spans[at].end > gap.end) break;  // it may go on in the next gap
        }
        if (from < gap.end) left.push_back({from, gap.end});
    }
    gaps.swap(left);
}

std::vector<Interval> sorted(std::vector<Interval> spans) {
    std::sort(spans.begin(), spans.end(), [](const Interval& a, const Interval& b) { return a.begin < b.begin; });
    return spans;
}

/// `whole` in parts like `weights`, exactly: what rounding leaves goes to the largest. All to the first
/// if no weight is positive.
template <size_t N>
std::array<Nanos, N> split(Nanos whole, const std::array<uint64_t, N>& weights) {
    std::array<Nanos, N> parts{};
    unsigned __int128 sum = 0;
    for (uint64_t weight : weights) sum += weight;
    if (sum == 0) {
        parts[0] = whole;
        return parts;
    }
    Nanos left = whole;
    for (size_t i = 0; i < N; i++) {
        parts[i] = static_cast<Nanos>(static_cast<unsigned __int128>(whole) * weights[i] / sum);
        left -= parts[i];
    }
    parts[static_cast<size_t>(std::max_element(weights.begin(), weights.end()) - weights.begin())] += left;
    return parts;
}

/// What the others' rows of one kind add to the cost of a step; `without` is the step without them.
uint64_t marginal(const RowCost& cost, const Rows& rows, const Rows& without) {
    const uint64_t all = cost(rows), fewer = cost(without);
    return all > fewer ? all - fewer : 0;
}

uint64_t sum(const Rows& rows) { return uint64_t{rows[kPrefill]} + rows[kDecode] + rows[kVerify]; }

/// The others' prefill and decode rows as weights: by marginal cost, or by number where they cost nothing
/// extra (a small step takes as long as reading the weights does).
std::array<uint64_t, 2> weights_of_others(const StepPart& step, const RowCost& cost) {
    Rows no_prefill = step.rows, no_decode = step.rows;
    no_prefill[kPrefill] = step.mine[kPrefill];
    no_decode[kDecode] = step.mine[kDecode];
    no_decode[kVerify] = step.mine[kVerify];
    const uint64_t prefill = marginal(cost, step.rows, no_prefill);
    const uint64_t decode = marginal(cost, step.rows, no_decode);
    if (prefill + decode > 0) return {prefill, decode};
    return {sum(step.rows) - sum(no_prefill), sum(step.rows) - sum(no_decode)};
}

/// The times from the first row on in which the request could have had a row.
std::vector<Interval> runnable_times(const RequestRecord& record, Nanos until) {
    if (!record.first_scheduled() || *record.first_scheduled() >= until) return {};
    std::vector<Interval> times = {{*record.first_scheduled(), until}};
    for (const auto* spans : {&record.preemptions(), &record.restores(), &record.transfers(), &record.slow()}) {
        take(times, sorted(*spans), [](size_t, Interval) {});
    }
    return times;
}

/// What of this part of a step's time is the wait for masks, in proportion.
Nanos part_masked(const StepPart& step, Nanos time) {
    const Nanos whole = step.end - step.begin, mask = std::clamp<Nanos>(step.mask, 0, std::max<Nanos>(0, whole));
    return mask == 0 ? 0 : static_cast<Nanos>(static_cast<__int128>(time) * mask / whole);
}

/// What of this part of a step's time is a draft model's, in proportion.
Nanos part_drafted(const StepPart& step, Nanos time) {
    const Nanos whole = step.end - step.begin, part = std::clamp<Nanos>(step.drafting, 0, std::max<Nanos>(0, whole));
    return part == 0 ? 0 : static_cast<Nanos>(static_cast<__int128>(time) * part / whole);
}

/// The draft model's time is due to those whom it computed rows for; what made guesses that were not accepted is waste.
Nanos divide_drafting(const StepPart& step, Nanos time, Receipt& receipt) {
    const Nanos drafted = part_drafted(step, time);
    if (drafted == 0) return 0;
    const uint64_t mine = step.my_drafting_rows, wasted = std::min<uint64_t>(step.my_wasted_rows, mine);
    const uint64_t others = step.drafting_rows - std::min<uint64_t>(step.drafting_rows, mine);
    const auto parts = split<3>(drafted, {others, mine - wasted, wasted});
    receipt[Cause::others_decode] += parts[0];
    receipt[Cause::own_decode] += parts[1];
    receipt[Cause::speculation_waste] += parts[2];
    return drafted;
}

/// Gives the steps with (or without) rows of the request their time, and divides it.
void take_steps(const RequestRecord& record, bool with_mine, Nanos until, const RowCost& cost,
                std::vector<Interval>& gaps, Receipt& receipt) {
    std::vector<Interval> spans;
    std::vector<const StepPart*> steps;  // the step of each span
    for (const StepPart& step : record.steps()) {
        if (step.begin >= until) continue;
        if ((step.mine != Rows{}) != with_mine) continue;
        spans.push_back({step.begin, step.end});
        steps.push_back(&step);
    }
    if (!with_mine) {
        std::vector<Interval> runnable = runnable_times(record, until);
        std::vector<Interval> pieces;
        std::vector<const StepPart*> owners;
        take(runnable, spans, [&](size_t i, Interval piece) {
            pieces.push_back(piece);
            owners.push_back(steps[i]);
        });
        spans.swap(pieces);
        steps.swap(owners);
    }
    // A step may lose its middle to something else: its pieces are divided as one.
    Nanos time = 0;
    const StepPart* current = nullptr;
    const auto settle = [&] {
        if (current != nullptr) divide_step(*current, time, cost, receipt);
        time = 0;
    };
    take(gaps, spans, [&](size_t i, Interval piece) {
        if (steps[i] != current) settle();
        current = steps[i];
        time += piece.end - piece.begin;
    });
    settle();
}

}  // namespace

void divide_step(const StepPart& step, Nanos time, const RowCost& cost, Receipt& receipt) {
    const Nanos masked = part_masked(step, time);
    receipt[Cause::mask] += masked;
    time -= masked + divide_drafting(step, time, receipt);
    const uint64_t all = cost(step.rows);
    uint64_t own = 0;
    if (step.mine != Rows{}) own = step.mine == step.rows ? all : std::min(cost(step.mine), all);
    // With no cost to go by, a step is its owner's, if it has one.
    const Nanos mine = all > 0 ? split<2>(time, {own, all - own})[0] : (step.mine != Rows{} ? time : 0);
    const auto others = split<2>(time - mine, weights_of_others(step, cost));
    receipt[Cause::others_prefill] += others[0];
    receipt[Cause::others_decode] += others[1];

    const uint64_t decoding = uint64_t{step.mine[kDecode]} + step.mine[kVerify];
    const uint64_t again = std::min<uint64_t>(step.recomputed, step.mine[kPrefill] + decoding);
    const uint64_t prefill_again = std::min<uint64_t>(again, step.mine[kPrefill]);
    const uint64_t decode_new = decoding - (again - prefill_again);
    const uint64_t wasted = std::min<uint64_t>(step.rejected, decode_new);
    const auto parts = split<4>(mine, {step.mine[kPrefill] - prefill_again, decode_new - wasted, wasted, again});
    receipt[Cause::own_prefill] += parts[0];
    receipt[Cause::own_decode] += parts[1];
    receipt[Cause::speculation_waste] += parts[2];
    receipt[Cause::recompute] += parts[3];
}

uint64_t RowCost::operator()(const std::array<uint32_t, kPhases>& rows) const noexcept {
    const uint64_t all = uint64_t{rows[0]} + rows[1] + rows[2];
    if (all == 0) return 0;
    return std::max(weights, row * all) + step + logits * (all - rows[static_cast<uint32_t>(Phase::prefill)]);
}

Receipt make_receipt(const RequestRecord& record, const RowCost& cost) {
    check(record.done().has_value(), "a receipt is for a request that is done");
    return make_receipt_until(record, *record.done(), cost);
}

Receipt make_receipt_until(const RequestRecord& record, Nanos until, const RowCost& cost) {
    const Nanos accepted = record.accepted(), done = until;
    check(accepted <= done, "the steady clock does not run backwards");

    Receipt receipt;
    std::vector<Interval> gaps;
    if (accepted < done) gaps.push_back({accepted, done});
    const auto charge = [&](Cause cause, std::vector<Interval> spans) {
        take(gaps, sorted(std::move(spans)),
             [&](size_t, Interval piece) { receipt[cause] += piece.end - piece.begin; });
    };

    take_steps(record, true, until, cost, gaps, receipt);
    take_steps(record, false, until, cost, gaps, receipt);
    charge(Cause::transfer, record.transfers());
    charge(Cause::restore, record.restores());
    charge(Cause::load, record.loads());
    charge(Cause::preempted, record.preemptions());
    charge(Cause::client_slow, record.slow());
    charge(Cause::sample_and_text, record.texts());
    charge(Cause::mask, record.masks());
    // An event that is missing never happened before the next one that did.
    const Nanos queued = std::min(record.queued().value_or(done), done);
    const Nanos tokenized = record.tokenized().value_or(queued);
    const Nanos parsed = record.parsed().value_or(tokenized);
    charge(Cause::parse, {{accepted, parsed}});
    charge(Cause::tokenize, {{parsed, tokenized}});
    charge(Cause::queue, {{queued, record.first_scheduled().value_or(done)}});
    charge(Cause::scheduler, {{accepted, done}});
    check(receipt.total() == done - accepted, "a receipt sums to its total");
    return receipt;
}

}  // namespace cadans::metrics
