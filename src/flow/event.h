// What happened, in the order in which it happened: the engine's side of every request's record.
#pragma once

#include <array>
#include <cstdint>

#include "base/ids.h"
#include "base/units.h"
#include "flow/phase.h"
#include "flow/sampling.h"

namespace cadans {

enum class FinishReason : uint8_t {
    stop,       ///< an end token, a constraint that is complete, or (decided at the door) a stop string
    length,     ///< max_new_tokens or the context was reached
    cancelled,  ///< the asker left
    error,      ///< logits that are no numbers, a lost worker
    refused,    ///< could never fit
    stuck,      ///< its constraint allows no token that the vocabulary has
};

/// Why the part of a prompt that came from cached pages is not longer.
enum class ReuseEnd : uint8_t {
    whole,      ///< it is: all but the last token, which must be computed to draw the next
    off,        ///< the server or the request wants no cache
    scored,     ///< the prompt's own tokens are scored, so all are computed
    first_use,  ///< nothing that begins like this was computed for this asker
    differs,    ///< what was computed goes on with another token
    extends,    ///< what was computed ends here
    evicted,    ///< it was computed, but its pages had to make room
};
inline constexpr uint32_t kReuseEnds = 7;

constexpr const char* name(ReuseEnd end) noexcept {
    constexpr const char* kNames[kReuseEnds] = {"whole", "off", "scored", "first_use", "differs", "extends", "evicted"};
    return kNames[static_cast<uint8_t>(end)];
}

/// Why a row that was drawn from had no (more) drafts behind it.
enum class DraftHold : uint8_t {
    none,      ///< it had all that were guessed, or nothing was to be drawn
    off,       ///< the server or the request wants none
    no_guess,  ///< nothing like its end was seen before
    unlikely,  ///< more would cost more time than they are likely to save
    gap,       ///< the step would take longer than the gap allows
    slow,      ///< the draft model takes longer than it can save, were it always right
    room,      ///< no rows or pages were left
};
inline constexpr uint32_t kDraftHolds = 7;

constexpr const char* name(DraftHold hold) noexcept {
    constexpr const char* kNames[kDraftHolds] = {"none", "off", "no_guess", "unlikely", "gap", "slow", "room"};
    return kNames[static_cast<uint8_t>(hold)];
}

enum class EventKind : uint8_t {
    step_begin,    ///< a step ran: `step`, times and rows of each phase; seq is not set
    step_share,    ///< directly after its step_begin: `seq` had `rows` rows in it, in `phase`
    token,         ///< `score.token` was accepted
    prompt_score,  ///< `score` is that of the prompt token at `position`
    preempted,     ///< its pages were taken; it will be computed again
    resumed,
    finished,  ///< the one terminal event of a sequence: `reason`
};

/// One line of the record. All events come from the engine thread, in order; those of one sequence end
/// with exactly one `finished`. A plain value: copied into a queue without allocation.
struct Event {
    EventKind kind = EventKind::step_begin;
    FinishReason reason = FinishReason::stop;
    Phase phase = Phase::prefill;
    SeqId seq{};
    RequestId request{};
    StepId step{};
    Nanos begin = 0;     ///< step_begin, step_share: when the step began
    Nanos time = 0;      ///< when it happened (of a step: its end)
    Nanos mask = 0;      ///< step_begin: of the step, waiting for masks of constraints
    Nanos drafting = 0;  ///< step_begin: of the step, a draft model's part
    uint32_t rows = 0;
    uint32_t position = 0;                 ///< token: its absolute position; step_share: prompt tokens computed so far
    uint32_t cached = 0;                   ///< step_share: prompt tokens that came from cached pages
    uint32_t reuse_position = 0;           ///< step_share: the first prompt token that was not found,
    ReuseEnd reuse_end = ReuseEnd::whole;  ///< and why
    uint32_t recomputed = 0;               ///< step_share: of `rows`, those computed before and lost to a preemption
    uint32_t rejected = 0;                 ///< step_share: of `rows`, drafts that were not accepted
    uint32_t modelled = 0;                 ///< step_share: of `rows`, guesses of a draft model
    uint32_t drafting_rows = 0;            ///< both: rows that a draft model computed
    DraftHold hold = DraftHold::none;      ///< step_share: why there were not more of them
    std::array<uint32_t, kPhases> rows_by_phase{};
    TokenScore score{};
};

}  // namespace cadans
