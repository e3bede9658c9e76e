// What a step's result means for those who were in it: the scheduler's books are brought up to date.
#include <algorithm>

#include "base/check.h"
#include "sched/scheduler.h"

namespace cadans::sched {
namespace {

Event about(const Sequence& sequence, EventKind kind, const StepResult& result) {
    Event event = sequence.about(kind, result.end);
    event.step = result.id;
    event.begin = result.begin;
    return event;
}

void report_scores(Sequence& sequence, const StepItem& item, const ItemResult& got, const StepResult& result,
                   std::vector<Event>& events) {
    for (uint32_t i = got.scores_begin; i < got.scores_end; i++) {
        const uint32_t position = item.first + (i - got.scores_begin) + 1;
        // Rows that are computed again after a preemption bring scores again: each is told once.
        if (position != sequence.scored || position >= sequence.prompt) continue;
        Event event = about(sequence, EventKind::prompt_score, result);
        event.position = position;
        event.score = result.scores[i];
        events.push_back(event);
        sequence.scored++;
    }
}

/// Appends what was accepted. True when the sequence has reached its end; then `reason` says which.
bool accept(Sequence& sequence, const ItemResult& got, const StepResult& result, FinishReason& reason,
            std::vector<Event>& events) {
    for (uint32_t i = got.accepted_begin; i < got.accepted_end; i++) {
        const TokenScore& next = result.accepted[i];
        check(sequence.known_count() < sequence.known_max, "no token is accepted beyond the asked number");
        Event event = about(sequence, EventKind::token, result);
        event.position = sequence.known_count();
        event.score = next;
        events.push_back(event);
        sequence.known.push_back(next.token);
        const auto& ends = sequence.request.end_tokens;
        if (std::binary_search(ends.begin(), ends.end(), next.token)) {
            reason = FinishReason::stop;
            return true;
        }
    }
    if (got.complete) {
        reason = FinishReason::stop;
        return true;
    }
    reason = FinishReason::length;
    const bool nothing_to_draw = sequence.known_max == sequence.prompt;
    return nothing_to_draw ? sequence.computed == sequence.prompt : sequence.known_count() == sequence.known_max;
}

/// Without what was drawn behind an end token: a draft model may guess beyond one.
ItemResult up_to_its_end(const Sequence& sequence, const StepItem& item, ItemResult got, const StepResult& result) {
    const auto& ends = sequence.request.end_tokens;
    for (uint32_t i = got.accepted_begin; item.drafts > 0 && i < got.accepted_end; i++) {
        if (!std::binary_search(ends.begin(), ends.end(), result.accepted[i].token)) continue;
        got.accepted_end = i + 1;
        got.computed = item.count - item.drafts + i - got.accepted_begin;
    }
    return got;
}

}  // namespace

void Scheduler::commit(const StepResult& result, Nanos, std::vector<Event>& events) {
    check(in_flight_ && result.id == plan_.id, "a result is that of the step in flight");
    check(result.items.size() == plan_.items.size(), "a result has an item for each of its plan");
    in_flight_ = false;

    Event step;
    step.kind = EventKind::step_begin;
    step.step = result.id;
    step.begin = result.begin;
    step.time = result.end;
    step.mask = result.mask;
    step.rows = plan_.rows();
    step.rows_by_phase = plan_.rows_by_phase;
    step.drafting = result.drafting;
    for (const Drafting& drafting : plan_.draftings) step.drafting_rows += drafting.rows();
    events.push_back(step);
    for (size_t i = 0; i < plan_.items.size(); i++) commit_item(plan_.items[i], result.items[i], result, events);
    time_.done(plan_, result.end - result.begin, result.drafting);
    plan_.clear();
}

void Scheduler::commit_item(const StepItem& item, const ItemResult& whole, const StepResult& result,
                            std::vector<Event>& events) {
    const auto found = sequences_.find(item.seq);
    check(found != sequences_.end() && whole.seq == item.seq, "an item's sequence stays until its step is committed");
    Sequence& sequence = found->second;
    const ItemResult got = up_to_its_end(sequence, item, whole, result);
    sequence.last_step = result.end;
    sequence.moved = true;
    sequence.pages.copied();
    sequence.known.resize(sequence.known_count());  // its drafts go: those that came are told with the result
    sequence.drafted = 0;
    const uint32_t model_rows = sequence.model_rows + (sequence.modelled > 0 ? sequence.modelled - 1 : 0);
    const uint32_t modelled = sequence.modelled;
    time_.charge(item, model_rows > 0, *sequence.account);
    learn_from_model(sequence, got.failed ? 0 : got.accepted_end - got.accepted_begin);

    const uint32_t before = sequence.computed;
    if (before > sequence.computed_most) {  // it did not compute these itself
        sequence.cached += std::min(before, sequence.prompt) - std::min(sequence.computed_most, sequence.prompt);
        sequence.computed_most = before;
    }
    if (!got.failed) {
        check(got.computed >= item.count - item.drafts && got.computed <= item.count,
              "an item computes what it was given, but for drafts");
        sequence.computed += got.computed;
    }
    Event share = about(sequence, EventKind::step_share, result);
    share.phase = item.phase;
    share.rows = item.count;
    share.position = std::min(sequence.computed, sequence.prompt);
    share.cached = sequence.cached;
    share.reuse_position = sequence.reuse.position;
    share.reuse_end = sequence.reuse.end;
    share.recomputed = std::min(sequence.computed, std::max(before, sequence.computed_most)) - before;
    const bool for_nothing = got.failed || got.stuck || sequence.standing == Standing::leaving;
    share.rejected = for_nothing ? item.drafts : item.count - got.computed;
    share.hold = sequence.hold;
    share.drafting_rows = model_rows;
    share.modelled = modelled;
    sequence.hold = DraftHold::none;
    events.push_back(share);
    sequence.computed_most = std::max(sequence.computed_most, sequence.computed);

    if (sequence.standing == Standing::leaving) {
        finish(sequence, FinishReason::cancelled, result.id, result.end, events);
        return;
    }
    if (got.failed) {
        finish(sequence, FinishReason::error, result.id, result.end, events);
        return;
    }
    if (got.stuck) {
        finish(sequence, FinishReason::stuck, result.id, result.end, events);
        return;
    }
    if (item.sample && item.constraint != nullptr) sequence.constraint_at = got.constraint_at;
    report_scores(sequence, item, got, result, events);
    check(item.sample || got.accepted_begin == got.accepted_end, "a token is drawn only where the plan says so");
    FinishReason reason{};
    check(item.drafts == 0 || got.accepted_end - got.accepted_begin == got.computed,
          "every row that stays has brought a token");
    learn_from(sequence, got, result);
    const bool ended = accept(sequence, got, result, reason, events);
    check(sequence.computed <= sequence.known_count(), "nothing unknown is computed");
    if (ended) {
        finish(sequence, reason, result.id, result.end, events);
    } else {
        check(sequence.computed < sequence.known_count(), "a sequence that goes on has a row due");
        if (item.drafts > 0) sequence.pages.shrink(sequence.known_count());
        sequence.pages.publish(sequence.known, sequence.computed);
        sequence.pages.slide(sequence.computed);
    }
}

}  // namespace cadans::sched
