// One stream of tokens while it is in the house: what is known of it, and how far it is computed.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/units.h"
#include "flow/drafter.h"
#include "flow/event.h"
#include "flow/phase.h"
#include "flow/request.h"
#include "kv/page_lease.h"
#include "sched/draft_tally.h"
#include "sched/machine_time.h"
#include "sched/policy.h"

namespace cadans::sched {

enum class Standing : uint8_t {
    waiting,  ///< holds no pages
    running,  ///< may have rows in any step
    leaving,  ///< cancelled while a step names it: ends when that step is committed
};

/// Owned by the scheduler. `known` is reserved for the longest it can become, so its span stays put.
struct Sequence {
    Sequence(SequenceRequest&& asked, kv::PagePool& pool, kv::PrefixTree* tree, uint32_t groups, uint64_t rank,
             Nanos now);

    SequenceRequest request;            ///< its prompt has moved into `known`
    ConstraintState constraint_at = 0;  ///< where its answer stands in its constraint
    std::vector<TokenId> known;         ///< prompt, then accepted tokens; in a step, then its drafts
    uint32_t prompt = 0;                ///< tokens of the prompt
    uint32_t known_max = 0;             ///< prompt + max_new_tokens
    uint32_t computed = 0;              ///< tokens whose keys and values are in the pages
    uint32_t computed_most = 0;         ///< the furthest `computed` ever was: rows before it are recomputed
    uint32_t cached = 0;                ///< prompt tokens that came from cached pages and were never computed here
    uint32_t arrived = 0;               ///< until it has started: tokens whose keys and values came along
    uint32_t scored = 1;                ///< prompt tokens [1, scored) have had their score reported
    uint64_t arrival = 0;               ///< rank of admission
    Nanos admitted = 0;
    Nanos last_step = 0;  ///< end of the last step it had a row in
    Standing standing = Standing::waiting;
    bool preempted = false;      ///< waits with work that was lost
    bool fresh = false;          ///< has just started: part of one cached page may be copied
    bool moved = false;          ///< has had rows: where reuse ended is settled
    uint64_t planned_in = 0;     ///< number of the last plan that named it
    Account* account = nullptr;  ///< of its scope
    bool guessed = false;        ///< a drafter knows it
    uint32_t drafted = 0;        ///< of `known`, the last so many are drafts of the step in flight
    uint32_t offered = 0;        ///< of `offer`: what was guessed for the step in flight
    uint32_t match = 0;          ///< Guess::match of it
    DraftHold hold = DraftHold::none;
    std::array<TokenId, kMostDrafts> offer{};
    DraftTally tally;
    std::optional<kv::PageLease> draft_pages;  ///< of the draft model; none: it never guesses for this one
    uint32_t draft_computed = 0;               ///< tokens whose keys and values are in them
    uint32_t draft_max = 0;                    ///< the most that the draft model can know
    uint32_t modelled = 0;                     ///< its guesses in the step in flight,
    uint32_t model_rows = 0;                   ///< and the known tokens that it computes in it
    bool model_tried = false;                  ///< it has guessed
    ModelTally model_tally;
    kv::PageLease::Reuse reuse;  ///< how far its prompt was found when it came
    kv::PageLease pages;

    uint32_t known_count() const noexcept { return static_cast<uint32_t>(known.size()) - drafted; }
    Phase phase() const noexcept { return phase_of(known_count(), computed, drafted); }
    void drop_draft_pages() {
        if (draft_pages) draft_pages->clear();
        draft_computed = 0;
    }
    /// Tokens [0, this) may come from cached pages: the last row is always computed, and every row that is scored.
    uint32_t reusable() const noexcept {
        const bool scores = request.score_prompt && scored < prompt;
        return scores ? scored - 1 : known_count() - 1;
    }
    /// Its next row brings its last token (or, with nothing to draw, ends it).
    bool about_to_end() const noexcept { return known_count() + 1 >= known_max && known_count() == computed + 1; }
    SequenceView view() const noexcept;
    /// What is told of it.
    Event about(EventKind kind, Nanos time) const noexcept;
};

}  // namespace cadans::sched
