#include "sched/cadence.h"

#include <algorithm>
#include <array>
#include <compare>

#include "sched/chunk.h"
#include "sched/forecast.h"
#include "sched/machine_time.h"

namespace cadans::sched {
namespace {

/// Chunks of this share of the best rate cost little enough to be worth an earlier look at who else came.
constexpr uint32_t kNearlyBest = 99;

/// By class: how long a prompt may take, as a multiple of its time alone, and beyond that.
struct Manners {
    uint32_t stretch;
    Micros grace;
};
constexpr std::array<Manners, 3> kManners = {{{2, 100'000}, {4, 500'000}, {8, 2'000'000}}};

bool is_prompt(const SequenceView& one) noexcept { return one.phase() == Phase::prefill; }

/// No word yet, and its time is over. One that lost its pages amid its answer is never late: it comes first.
bool is_late(const View& view, const SequenceView& one) noexcept {
    return one.known == one.prompt && deadline_of(view, one) < view.now / kNanosPerMicro;
}

/// The order of the line: smaller goes first. Who is late stands behind those who can still be served in time.
struct Rank {
    bool slack, late;
    Micros deadline;
    uint64_t arrival;
    friend auto operator<=>(const Rank&, const Rank&) = default;
};

Rank rank_of(const View& view, const SequenceView& one) noexcept {
    const bool late = is_late(view, one);
    return {only_slack(view, one), late, late ? 0 : deadline_of(view, one), one.arrival};
}

Wish wish_of(const SequenceView& one, uint32_t rows_left) noexcept {
    return {one.computed, std::min(one.due(), rows_left), one.due(), one.score};
}

/// The step that these shares make, seen from one model.
StepSoFar step_of(const View& view, const std::vector<Share>& shares, ModelId model) noexcept {
    StepSoFar step{&view.cost_of(model), {}, 0};
    for (uint16_t m = 0; m < std::max<size_t>(view.costs.size(), 1); m++) {
        const StepCost& cost = view.cost_of(ModelId{m});
        StepShape shape;
        for (const Share& share : shares) {
            const SequenceView& one = view.running[share.sequence];
            if (one.model != ModelId{m}) continue;
            cost.add(shape, one.computed, share.rows, wish_of(one, share.rows).logits(share.rows));
        }
        if (ModelId{m} == model) {
            step.shape = shape;
        } else {
            step.others += cost.predict(shape);
        }
    }
    return step;
}

Micros predicted(const View& view, const std::vector<Share>& shares) noexcept {
    return step_of(view, shares, ModelId{0}).predicted();
}

uint32_t rows_of(const std::vector<Share>& shares) noexcept {
    uint32_t rows = 0;
    for (const Share& share : shares) rows += share.rows;
    return rows;
}

void share_writers(const View& view, bool slack, std::vector<Share>& shares) {
    for (uint32_t i = 0; i < view.running.size(); i++) {
        const SequenceView& one = view.running[i];
        if (!is_prompt(one) && only_slack(view, one) == slack) shares.push_back({i, 1});
    }
}

/// Gives the prompt at `at` as many rows as end within `within`, those it has in this step included. False when it
/// got fewer than it wants: then the step is full.
bool give_chunk(const View& view, uint32_t at, Micros within, std::vector<Share>& shares) {
    const auto has =
        std::find_if(shares.begin(), shares.end(), [at](const Share& share) { return share.sequence == at; });
    if (has != shares.end()) shares.erase(has);
    const SequenceView& one = view.running[at];
    const uint32_t left = view.limits.max_rows - rows_of(shares);
    if (left == 0) return false;
    const uint32_t rows = largest_chunk(step_of(view, shares, one.model), wish_of(one, left), within);
    if (rows > 0) shares.push_back({at, rows});
    return rows == one.due();
}

/// Gives the prompt at `at` all the rows it wants if that ends within `within`, else none beyond what it has.
bool give_rest(const View& view, uint32_t at, Micros within, std::vector<Share>& shares) {
    const size_t others = shares.size();
    const bool had = std::any_of(shares.begin(), shares.end(), [at](const Share& s) { return s.sequence == at; });
    if (had) return false;  // the late one has its half
    if (give_chunk(view, at, within, shares)) return true;
    shares.resize(others);
    return false;
}

/// Whether running[at] has all the rows it wants.
bool is_served(const View& view, uint32_t at, const std::vector<Share>& shares) noexcept {
    return std::any_of(shares.begin(), shares.end(), [&](const Share& share) {
        return share.sequence == at && share.rows == view.running[at].due();
    });
}

/// The index of the best prompt that is not served yet, of those that have (no) slack only; kNobody if none.
template <class Before>
uint32_t best_prompt(const View& view, bool slack, const std::vector<Share>& shares, Before&& before) {
    uint32_t best = kNobody;
    for (uint32_t i = 0; i < view.running.size(); i++) {
        const SequenceView& one = view.running[i];
        if (!is_prompt(one) || only_slack(view, one) != slack || is_served(view, i, shares)) continue;
        if (best == kNobody || before(one, view.running[best])) best = i;
    }
    return best;
}

/// The late prompt that came first, of those that are not background; kNobody if none.
uint32_t oldest_late(const View& view, std::span<const SequenceView> sequences) noexcept {
    for (uint32_t i = 0; i < sequences.size(); i++) {
        const SequenceView& one = sequences[i];
        if (is_prompt(one) && !only_slack(view, one) && is_late(view, one)) return i;
    }
    return kNobody;
}

void share_prompts_within(const View& view, bool slack, Micros within, std::vector<Share>& shares) {
    const auto sooner = [&view](const SequenceView& a, const SequenceView& b) {
        return rank_of(view, a) < rank_of(view, b);
    };
    const uint32_t soonest = best_prompt(view, slack, shares, sooner);
    if (soonest == kNobody) return;
    const size_t writers = shares.size();
    const uint32_t oldest = oldest_late(view, view.running);
    if (oldest != kNobody && oldest != soonest && only_slack(view, view.running[oldest]) == slack) {
        const Micros so_far = predicted(view, shares);
        give_chunk(view, oldest, so_far + (within - so_far) / 2, shares);
    }
    Micros until = within;
    for (uint32_t at = soonest; at != kNobody; at = best_prompt(view, slack, shares, sooner)) {
        if (!(until < within ? give_rest : give_chunk)(view, at, until, shares)) break;
        // A first word comes at the end of this step: only prompts that end here too make it longer, by a quarter.
        if (until == within) until = std::min(within, predicted(view, shares) / 4 * 5);
    }
    // Whatever the prediction says, the first in line moves.
    if (shares.size() == writers && rows_of(shares) < view.limits.max_rows) shares.push_back({soonest, 1});
}

/// How long a step may take in which nobody writes.
Micros time_alone(const View& view, ModelId model) noexcept {
    const StepCost& cost = view.cost_of(model);
    const uint32_t chunk = smallest_good_chunk(cost, view.limits.max_rows, kNearlyBest);
    StepShape shape;
    cost.add(shape, 0, chunk, 1);
    return std::max(view.limits.gap, cost.predict(shape));
}

void share(const View& view, std::vector<Share>& shares) {
    const auto any = [](const SequenceView&, const SequenceView&) { return false; };
    share_writers(view, false, shares);
    const uint32_t prompt = best_prompt(view, false, shares, any);
    if (prompt != kNobody) {
        const Micros alone = shares.empty() ? time_alone(view, view.running[prompt].model) : 0;
        const Micros within =
            shares.empty() ? alone : time_for_step(planned_step(view.limits.gap, view.margin), predicted(view, shares));
        return share_prompts_within(view, false, within, shares);
    }
    const Micros writing = predicted(view, shares);
    const bool alone = shares.empty();
    share_writers(view, true, shares);
    const uint32_t background = best_prompt(view, true, shares, any);
    if (background == kNobody) return;
    const Micros all = predicted(view, shares);
    const Micros within =
        !alone           ? std::max(all, std::min(planned_step(view.limits.gap, view.margin), writing + writing / 4))
        : shares.empty() ? time_alone(view, view.running[background].model)
                         : time_for_step(planned_step(view.limits.gap, view.margin), all);
    share_prompts_within(view, true, within, shares);
}

/// Enough prompts run to fill a step, and one who waits would come behind all of them.
bool would_only_wait(const View& view, const SequenceView& one) noexcept {
    const Rank rank = rank_of(view, one);
    uint64_t due = 0;
    for (const SequenceView& other : view.running) {
        if (!is_prompt(other)) continue;
        if (one.due() < other.due() || rank < rank_of(view, other)) return false;
        due += other.due();
    }
    return due >= view.limits.max_rows;
}

uint32_t next(const View& view) {
    uint32_t best = 0;
    Rank first = rank_of(view, view.waiting[0]);
    for (uint32_t i = 1; i < view.waiting.size(); i++) {
        const Rank rank = rank_of(view, view.waiting[i]);
        if (rank < first) {
            first = rank;
            best = i;
        }
    }
    // Half of the time is for the oldest late one: it must be there to take it.
    const uint32_t oldest = oldest_late(view, view.waiting);
    const bool owed = oldest != kNobody && oldest_late(view, view.running) == kNobody;
    if (owed) best = oldest;
    if (view.running.empty()) return best;
    if (time_to_write(view) > view.limits.gap) return kNobody;
    return !owed && would_only_wait(view, view.waiting[best]) ? kNobody : best;
}

bool before(const View& view, const SequenceView& a, const SequenceView& b) {
    return rank_of(view, a) < rank_of(view, b);
}

Micros promise(const View& view) { return time_for_step(view.limits.gap, time_to_write(view)); }

}  // namespace

bool only_slack(const View& view, const SequenceView& one) noexcept {
    return one.priority == Priority::background && view.now - std::max(one.admitted, one.last_step) < kPatience;
}

Micros deadline_of(const View& view, const SequenceView& one) noexcept {
    const Manners manners = kManners[static_cast<uint8_t>(one.priority)];
    const StepCost& cost = view.cost_of(one.model);
    const Micros alone = reading_time(cost, 0, one.prompt, one.score ? one.prompt : 1);
    return one.admitted / kNanosPerMicro + manners.grace + manners.stretch * alone +
           std::min(one.lead, MachineTime::kForgiven);
}

Policy cadence() noexcept { return {"cadence", next, share, promise, before}; }

}  // namespace cadans::sched
