// What a draft model does in a step: when it is asked, when it catches up, and what becomes of its pages.
#include <algorithm>

#include "sched/scheduler.h"

namespace cadans::sched {
namespace {

constexpr uint32_t kWorthTrying = 8;       ///< guesses in a row that are looked at
constexpr uint32_t kLeastGain = 32;        ///< a part of what a token costs without
constexpr uint32_t kMostCaughtUp = 256;    ///< known tokens of one sequence in a step
constexpr uint32_t kUsualAnswer = 64;      ///< tokens that an answer is taken to have left, at least
constexpr uint32_t kAllFollow = 8;         ///< what is taken of a newcomer follows each guess by this part
constexpr uint32_t kAllForgetWithin = 32;  ///< and forgets most of a bad record within so many answers
constexpr uint64_t kCertain = ModelTally::kCertain;

}  // namespace

/// Known tokens that the draft model has not computed.
uint32_t Scheduler::due_of_model(const Sequence& sequence) const noexcept {
    return sequence.known_count() - sequence.draft_computed;
}

/// What a token of this sequence takes less with the model's guesses than without, were each as likely as `chance`, in
/// nanoseconds; 0 where that is less than a 32nd, or nothing is predicted.
uint64_t Scheduler::gain_of_model(const Sequence& sequence, uint32_t chance) const {
    const ModelId target = sequence.request.model;
    const StepCost& cost = time_.cost_of(target);
    const StepCost& drafter = time_.cost_of(house_.draft->model);
    if (cost == StepCost{} || drafter == StepCost{}) return 0;
    const uint32_t first = sequence.known_count() - 1;
    const auto step = [&](uint32_t drafts) {
        StepShape shape;
        cost.add_drafts(shape, first, drafts);
        return time_.curves()[index(target)].nanos(cost, shape);
    };
    StepShape pass;
    drafter.add_catching_up(pass, first, 1, true);
    const uint64_t guess = drafter.scaled_ps(pass) / 1000, plain = step(0);
    uint64_t best = plain, all = kCertain, tokens = kCertain;
    for (uint32_t drafts = 1; drafts <= kWorthTrying; drafts++) {
        all = all * chance / kCertain;
        tokens += all;
        best = std::min(best, (step(drafts) + drafts * guess) * kCertain / tokens);
    }
    return plain > best + plain / kLeastGain ? plain - best : 0;
}

/// Lets the draft model guess for this candidate instead, where it is the likelier one and is not far behind.
void Scheduler::ask_model(Sequence& sequence, DraftCandidate& one) {
    if (!sequence.draft_pages) return;
    const uint32_t due = due_of_model(sequence);
    if (due > StepCost::kFewRows || draft_rows_ + due > house_.limits.max_rows) return;
    if (one.offered > 0 && one.tally->chance(one.match) >= sequence.model_tally.chance()) return;
    const StepCost& drafter = time_.cost_of(house_.draft->model);
    if (drafter == StepCost{} || time_.cost_of(one.model) == StepCost{}) return;
    const uint32_t known = sequence.known_count();
    const uint32_t most = std::min(
        {kMostDrafts, sequence.known_max - 1 - known, sequence.draft_max - std::min(known, sequence.draft_max)});
    if (most == 0) return;
    one.modelled = &sequence.model_tally;
    one.due = due;
    one.offered = most;
    draft_rows_ += due;
}

/// A model that is far behind reads on where its guesses are likely to be worth that: in what is left of the step.
void Scheduler::catch_up(Micros within) {
    if (time_.cost_of(house_.draft->model) == StepCost{}) return;
    for (size_t i = 0; i < candidates_.size(); i++) {
        StepItem& item = plan_.items[candidate_items_[i]];
        Sequence& sequence = sequences_.find(item.seq)->second;
        const DraftCandidate& one = candidates_[i];
        if (!sequence.draft_pages || one.modelled != nullptr || sequence.known_count() > sequence.draft_max) continue;
        if (time_.cost_of(item.model) == StepCost{}) continue;
        const uint32_t due = due_of_model(sequence);
        if (due <= StepCost::kFewRows) continue;
        const uint64_t gain = gain_of_model(sequence, sequence.model_tally.chance());
        const uint32_t known = sequence.known_count();
        const uint64_t left = std::min(sequence.known_max - known, std::max(kUsualAnswer, known - sequence.prompt));
        const StepCost& drafter = time_.cost_of(house_.draft->model);
        const auto nanos = [&](uint32_t rows) {
            StepShape shape;
            drafter.add_catching_up(shape, sequence.draft_computed, rows, false);
            return drafter.scaled_ps(shape) / 1000;
        };
        if (gain * left <= nanos(due)) {
            if (item.drafts == 0) sequence.hold = model_hold(sequence);
            sequence.model_tally.forget(house_chance_, ModelTally::kForgetsWithin);
            continue;
        }
        const Micros predicted = time_.predict(plan_);
        const uint64_t room = predicted < within ? static_cast<uint64_t>(within - predicted) * kNanosPerMicro : 0;
        uint32_t rows = std::min({due, kMostCaughtUp, house_.limits.max_rows - draft_rows_});
        while (rows > StepCost::kFewRows && nanos(rows) > room) rows /= 2;
        if (rows <= StepCost::kFewRows) {
            if (item.drafts == 0) sequence.hold = DraftHold::gap;
            continue;
        }
        if (!sequence.draft_pages->grow(sequence.draft_computed + rows)) {
            if (item.drafts == 0) sequence.hold = DraftHold::room;
            continue;
        }
        draft_rows_ += rows;
        add_drafting(sequence, candidate_items_[i], rows, 0);
    }
}

/// Why a model was not asked.
DraftHold Scheduler::model_hold(const Sequence& sequence) const {
    return gain_of_model(sequence, kCertain) == 0 ? DraftHold::slow : DraftHold::unlikely;
}

void Scheduler::add_drafting(Sequence& sequence, uint32_t item, uint32_t rows, uint32_t guesses) {
    Drafting drafting;
    drafting.item = item;
    drafting.model = house_.draft->model;
    drafting.first = sequence.draft_computed;
    drafting.count = rows;
    drafting.guesses = guesses;
    if (guesses > 0) drafting.out = sequence.known.data() + sequence.known_count();
    drafting.group_count = sequence.draft_pages->groups();
    for (uint32_t group = 0; group < drafting.group_count; group++)
        drafting.pages[group] = sequence.draft_pages->run(group);
    sequence.modelled = guesses;
    sequence.model_rows = rows;
    plan_.draftings.push_back(drafting);
}

/// After a step: how far the model's own keys and values hold, and which of its guesses came.
void Scheduler::learn_from_model(Sequence& sequence, uint32_t drawn) {
    if (sequence.model_rows == 0) return;
    sequence.draft_computed += sequence.model_rows;
    const uint32_t guesses = sequence.modelled;
    sequence.modelled = sequence.model_rows = 0;
    if (guesses > 0 && drawn > 0) {
        sequence.draft_computed += std::min(guesses, drawn) - 1;
        sequence.model_tried = true;
        for (uint32_t i = 0; i < std::min(guesses, drawn); i++) {
            const bool came = i + 1 < drawn;
            sequence.model_tally.learn(came);
            const uint64_t part = came ? kCertain - house_chance_ : house_chance_;
            const auto way = static_cast<uint32_t>((part + kAllFollow - 1) / kAllFollow);
            house_chance_ = came ? house_chance_ + way : house_chance_ - way;
        }
    }
    sequence.draft_pages->slide(sequence.draft_computed);
}

/// A sequence for which no guess of the model was ever taken in ends: its bad record fades a little.
void Scheduler::forget_model(const Sequence& sequence) {
    if (!sequence.draft_pages || sequence.model_tried || house_chance_ >= ModelTally::kAtFirst) return;
    house_chance_ += (ModelTally::kAtFirst - house_chance_ + kAllForgetWithin - 1) / kAllForgetWithin;
}

/// Pages of the draft model go before anybody gives way; between plans none of them is in use. False: there were none.
bool Scheduler::drop_draft_pages() {
    for (auto at = running_.rbegin(); at != running_.rend(); ++at) {
        if (!(*at)->draft_pages || (*at)->draft_pages->bytes() == 0) continue;
        (*at)->drop_draft_pages();
        return true;
    }
    return false;
}

}  // namespace cadans::sched
