#include "sched/draft_choice.h"

#include <algorithm>

namespace cadans::sched {
namespace {

constexpr uint64_t kCertain = DraftCandidate::kCertainOfAll;
constexpr uint64_t kHopeless = kCertain / 16;  ///< a guess this unlikely is never worth a row
constexpr uint64_t kLikely = kCertain / 2;  ///< where nothing is known of what rows cost, it must be likelier than not
constexpr uint64_t kLeastGain = 32;         ///< a part of what the step brings without drafts
constexpr uint32_t kNobody = UINT32_MAX;

/// The chance that all that are taken and the next one come.
uint64_t next_chance(const DraftCandidate& one) noexcept {
    const uint32_t next = one.modelled != nullptr ? one.modelled->chance() : one.tally->chance(one.match + one.taken);
    return one.chance / DraftTally::kCertain * next;
}

uint64_t nanos_of(const DraftStep& step) noexcept {
    uint64_t sum = 0;
    for (size_t m = 0; m < step.costs.size(); m++) {
        const StepShape& shape = step.shapes[m];
        sum += shape.prompt_context > 0 ? step.costs[m].scaled_ps(shape) / 1000
                                        : step.curves[m].nanos(step.costs[m], shape);
    }
    for (const StepShape& pass : step.passes) {
        if (pass.rows == 0) break;
        sum += step.drafter->scaled_ps(pass) / 1000;
    }
    return sum;
}

/// What the draft model does for a candidate in one of its passes.
StepShape pass_of(const DraftCandidate& one, uint32_t pass, const StepCost& drafter) noexcept {
    StepShape shape;
    if (pass == 0)
        drafter.add_catching_up(shape, one.first + 1 - one.due, one.due, true);
    else
        drafter.add_catching_up(shape, one.first + pass, 1, true);
    return shape;
}

void take(DraftCandidate& one, uint32_t drafts, const DraftStep& step) noexcept {
    if (index(one.model) < step.costs.size()) {
        const StepCost& cost = step.costs[index(one.model)];
        StepShape before, after;
        cost.add_drafts(before, one.first, one.taken);
        cost.add_drafts(after, one.first, drafts);
        step.shapes[index(one.model)] += after;
        step.shapes[index(one.model)] -= before;
    }
    if (one.modelled != nullptr) {
        for (uint32_t pass = one.taken; pass < drafts; pass++) step.passes[pass] += pass_of(one, pass, *step.drafter);
        for (uint32_t pass = drafts; pass < one.taken; pass++) step.passes[pass] -= pass_of(one, pass, *step.drafter);
    }
    one.taken = drafts;
}

/// Expected tokens and the time that they take.
struct Yield {
    uint64_t tokens = 0, nanos = 1;

    /// More tokens in the same time, by at least a part of kLeastGain where that is given.
    bool beats(const Yield& other, uint64_t least_gain = 0) const noexcept {
        const auto mine = static_cast<unsigned __int128>(tokens) * other.nanos;
        const auto theirs = static_cast<unsigned __int128>(other.tokens) * nanos;
        return least_gain == 0 ? mine > theirs : mine * least_gain > theirs * (least_gain + 1);
    }
};

uint32_t likeliest(std::span<const DraftCandidate> candidates, uint64_t chance) noexcept {
    uint32_t best = kNobody;
    for (uint32_t i = 0; i < candidates.size(); i++) {
        if (candidates[i].taken == candidates[i].offered) continue;
        const uint64_t next = next_chance(candidates[i]);
        if (next <= chance) continue;
        best = i;
        chance = next;
    }
    return best;
}

}  // namespace

void choose_drafts(std::span<DraftCandidate> candidates, const DraftStep& step, std::vector<uint32_t>& order) {
    order.clear();
    const uint64_t nanos = nanos_of(step);
    const Yield plain{step.tokens * kCertain, std::max<uint64_t>(1, nanos)};
    const uint64_t least = nanos == 0 ? kLikely : kHopeless;
    const uint64_t within = static_cast<uint64_t>(step.within) * kNanosPerMicro;
    Yield now = plain, best = plain;
    size_t kept = 0;
    DraftHold end = DraftHold::unlikely;  // why no more come in
    for (uint32_t i = likeliest(candidates, least); i != kNobody; i = likeliest(candidates, least)) {
        if (order.size() == step.rows_left) {
            end = DraftHold::room;
            break;
        }
        DraftCandidate& one = candidates[i];
        const uint64_t chance = next_chance(one);
        take(one, one.taken + 1, step);
        now = {now.tokens + chance, std::max<uint64_t>(1, nanos_of(step))};
        if (nanos > 0 && now.nanos > within) {
            take(one, one.taken - 1, step);
            end = DraftHold::gap;
            break;
        }
        one.chance = chance;
        order.push_back(i);
        if (!now.beats(best)) continue;
        best = now;
        kept = order.size();
    }
    if (!best.beats(plain, kLeastGain)) kept = 0;
    if (kept < order.size()) end = DraftHold::unlikely;
    for (; order.size() > kept; order.pop_back()) {
        DraftCandidate& one = candidates[order.back()];
        take(one, one.taken - 1, step);
    }
    for (DraftCandidate& one : candidates) {
        if (one.offered == 0)
            one.hold = DraftHold::no_guess;
        else
            one.hold = one.taken == one.offered ? DraftHold::none : end;
    }
}

}  // namespace cadans::sched
