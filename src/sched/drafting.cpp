// What guesses do to a plan and what becomes of them: the scheduler's part in speculation.
#include <algorithm>

#include "base/check.h"
#include "sched/chunk.h"
#include "sched/scheduler.h"

namespace cadans::sched {

/// Who draws a token in this step with nothing but its one row is asked for guesses; as many as pay become rows. None
/// in a step that reads a prompt: that one is filled to the gap already, and whoever waits for it would wait longer. A
/// draft model guesses in the very step that checks, so its part is planned, and priced, with the rest.
void Scheduler::add_drafts() {
    if (drafter_ == nullptr) return;
    candidates_.clear();
    candidate_items_.clear();
    draft_rows_ = 0;
    uint32_t tokens = 0;
    bool any = false;
    const bool reads =
        std::ranges::any_of(plan_.items, [](const StepItem& item) { return item.phase == Phase::prefill; });
    for (uint32_t i = 0; i < plan_.items.size(); i++) {
        const StepItem& item = plan_.items[i];
        tokens += item.sample;
        if (item.phase == Phase::prefill || !item.sample || item.score) continue;
        Sequence& sequence = sequences_.find(item.seq)->second;
        sequence.hold = sequence.guessed ? DraftHold::none : DraftHold::off;
        if (!sequence.guessed) continue;
        guess(sequence);
        if (sequence.offered > 0)
            plan_.offers.push_back({item.seq, sequence.match, std::span(sequence.offer).first(sequence.offered)});
        candidates_.push_back({.tally = &sequence.tally,
                               .model = item.model,
                               .first = item.first,
                               .offered = sequence.offered,
                               .match = sequence.match});
        candidate_items_.push_back(i);
        if (!reads) ask_model(sequence, candidates_.back());
        any = any || candidates_.back().offered > 0;
    }
    const Micros planned = planned_step(house_.limits.gap, time_.margin());
    const Micros within = time_for_step(planned, time_.predict(plan_));
    if (any && !reads) {
        choose(tokens, within);
    } else {
        for (DraftCandidate& one : candidates_) one.hold = one.offered > 0 ? DraftHold::gap : DraftHold::no_guess;
    }
    for (size_t i = 0; i < candidates_.size(); i++) take_in(candidate_items_[i], candidates_[i]);
    if (!reads && house_.draft) catch_up(within);
}

/// Asks for what may follow, as far as it could be accepted: the last token is always drawn, never guessed, and behind
/// an end nothing follows. What a form forces is the best of guesses.
void Scheduler::guess(Sequence& sequence) {
    const uint32_t most = std::min(kMostDrafts, sequence.known_max - 1 - sequence.known_count());
    const std::span offer = std::span(sequence.offer).first(most);
    Guess got;
    if (const auto& constraint = sequence.request.constraint; constraint != nullptr)
        got = {constraint->forced(sequence.constraint_at, offer), kForcedMatch};
    if (got.tokens == 0) got = drafter_->guess(sequence.request.seq, sequence.known, offer);
    check(got.tokens <= most && (got.tokens == 0 || got.match > 0), "a guess fits what was asked for");
    const auto& ends = sequence.request.end_tokens;
    const auto begin = sequence.offer.begin(), end = begin + got.tokens;
    const auto last =
        std::find_if(begin, end, [&](TokenId token) { return std::binary_search(ends.begin(), ends.end(), token); });
    sequence.offered = static_cast<uint32_t>(last - begin);
    sequence.match = got.match;
}

void Scheduler::choose(uint32_t tokens, Micros within) {
    const std::span<const StepCost> costs = time_.costs();
    shapes_.assign(costs.size(), StepShape{});
    for (const StepItem& item : plan_.items)
        if (index(item.model) < costs.size()) costs[index(item.model)].add(shapes_[index(item.model)], item);
    passes_.fill({});
    choose_drafts(candidates_,
                  {.costs = costs,
                   .curves = time_.curves(),
                   .shapes = shapes_,
                   .tokens = tokens,
                   .rows_left = house_.limits.max_rows - plan_.rows(),
                   .within = within,
                   .drafter = house_.draft ? &time_.cost_of(house_.draft->model) : nullptr,
                   .passes = passes_},
                  draft_order_);
}

/// Puts the drafts that were chosen behind the item's row, as far as there are pages: nobody gives way for a guess.
void Scheduler::take_in(uint32_t number, DraftCandidate& chosen) {
    StepItem& item = plan_.items[number];
    Sequence& sequence = sequences_.find(item.seq)->second;
    sequence.hold = chosen.hold;
    uint32_t drafts = chosen.taken;
    const bool modelled = chosen.modelled != nullptr;
    const uint32_t held = sequence.pages.tokens_held(), known = sequence.known_count();
    if (modelled && drafts == 0) {
        if (sequence.hold == DraftHold::unlikely) sequence.hold = model_hold(sequence);
        sequence.model_tally.forget(house_chance_, ModelTally::kForgetsWithin);
    }
    if (modelled && drafts > 0 && !sequence.draft_pages->grow(known + drafts - 1)) {
        drafts = 0;
        sequence.hold = DraftHold::room;
    }
    if (drafts > 0 && !sequence.pages.grow(known + drafts)) {
        drafts = std::min(drafts, held - known);
        sequence.hold = DraftHold::room;
    }
    if (drafts == 0) return;
    plan_.rows_by_phase[static_cast<uint8_t>(item.phase)] -= item.count;
    if (modelled)
        sequence.known.insert(sequence.known.end(), drafts, TokenId{0});  // until the model has guessed
    else
        sequence.known.insert(sequence.known.end(), sequence.offer.begin(), sequence.offer.begin() + drafts);
    sequence.drafted = drafts;
    if (modelled && sequence.hold == DraftHold::unlikely)
        sequence.hold = DraftHold::none;  // it could always guess more
    if (modelled) add_drafting(sequence, number, chosen.due, drafts);
    item.known = sequence.known;
    item.drafts = drafts;
    item.count += drafts;
    item.phase = sequence.phase();
    for (uint32_t group = 0; group < item.group_count; group++) item.pages[group] = sequence.pages.run(group);
    plan_.rows_by_phase[static_cast<uint8_t>(item.phase)] += item.count;
}

/// After a step: what was drawn where something was guessed, as far as all before it had come.
void Scheduler::learn_from(Sequence& sequence, const ItemResult& got, const StepResult& result) {
    const uint32_t drawn = got.accepted_end - got.accepted_begin;
    for (uint32_t i = 0; i < std::min(drawn, sequence.offered); i++) {
        const bool came = result.accepted[got.accepted_begin + i].token == sequence.offer[i];
        sequence.tally.learn(sequence.match + i, came);
        if (!came) break;
    }
    sequence.offered = 0;
}

}  // namespace cadans::sched
