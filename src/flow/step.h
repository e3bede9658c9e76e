// One forward pass: the plan that goes in and the result that comes out.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"
#include "base/units.h"
#include "flow/constraint.h"
#include "flow/embedding.h"
#include "flow/model_facts.h"
#include "flow/phase.h"
#include "flow/sampling.h"

namespace cadans {

/// The pages of one group that a sequence holds: ids[i] has tokens of absolute page first_page + i.
struct PageRun {
    uint32_t first_page = 0;
    std::span<const PageId> ids;
};

/// One sequence's share of a step: its tokens [first, first + count) are computed now.
/// All spans and pointers are borrowed from the scheduler until the step's result is committed.
struct StepItem {
    ModelId model{};
    SeqId seq{};
    std::span<const TokenId> known;  ///< prompt and accepted tokens, then drafts; indexed by position
    uint32_t first = 0;              ///< position of the first token computed in this step
    uint32_t count = 0;              ///< tokens computed in this step, at least 1
    uint32_t drafts = 0;             ///< how many of the last tokens are guesses
    Phase phase = Phase::prefill;
    bool sample = false;  ///< the step reaches the end of what is known: draw the next token
    bool score = false;   ///< score known[p + 1] at every row p that has one
    const SamplingParams* sampling = nullptr;
    Constraint* constraint = nullptr;  ///< null: any token may be drawn
    ConstraintState constraint_at = 0;
    Embedding* embedding = nullptr;  ///< not null: its rows go there
    uint32_t group_count = 0;
    std::array<PageRun, kMaxPageGroups> pages{};  ///< per page group; hold room for every token up to first + count
};

/// A page that is copied whole before any row of the step is computed: `from` is shared and stays as it is.
struct PageCopy {
    ModelId model{};
    GroupId group{};
    PageId from{};
    PageId to{};
};

/// What was guessed for a sequence, whether or not the step takes it in.
struct DraftOffer {
    SeqId seq{};
    uint32_t match = 0;               ///< Guess::match
    std::span<const TokenId> tokens;  ///< at least 1; borrowed as an item's are
};

/// What a smaller model does for an item of the plan before the step's rows are computed: it computes known tokens that
/// it has not seen yet and may then guess what follows, one token after the other, each drawn as the item's own would
/// be, with the noise of its position. Its guesses are the drafts that the step checks.
struct Drafting {
    uint32_t item = 0;  ///< of the plan
    ModelId model{};
    uint32_t first = 0;      ///< position of the first known token that it computes
    uint32_t count = 0;      ///< so many of them, at least 1; where it guesses, all that are known
    uint32_t guesses = 0;    ///< 0: it only catches up; else as many as the item has drafts
    TokenId* out = nullptr;  ///< where they go: to the end of the item's `known`. All else in a plan is only read
    uint32_t group_count = 0;
    std::array<PageRun, kMaxPageGroups> pages{};  ///< of the smaller model; with room up to first + count + guesses - 1

    /// Rows that it computes in all.
    uint32_t rows() const noexcept { return count + (guesses > 0 ? guesses - 1 : 0); }
};

struct StepPlan {
    StepId id{};
    std::vector<PageCopy> copies;     ///< no page is both copied from and copied to
    std::vector<Drafting> draftings;  ///< all of one model, at most one an item
    std::vector<StepItem> items;      ///< decode and verify first, then prefill
    std::vector<DraftOffer> offers;   ///< in the order of their items, of those that may have drafts
    std::array<uint32_t, kPhases> rows_by_phase{};

    void clear() noexcept {
        copies.clear();
        draftings.clear();
        items.clear();
        offers.clear();
        rows_by_phase = {};
    }
    uint32_t rows() const noexcept { return rows_by_phase[0] + rows_by_phase[1] + rows_by_phase[2]; }
};

/// What one item brought. Ranges index StepResult::accepted and ::scores.
struct ItemResult {
    SeqId seq{};
    uint32_t computed = 0;  ///< of the tokens given, from the first on: those that stay (a refused draft does not)
    uint32_t accepted_begin = 0, accepted_end = 0;
    uint32_t scores_begin = 0, scores_end = 0;
    bool failed =
        false;  ///< a logit was not a number, or memory ran out: this sequence ends with an error, others go on
    // Of an item with a constraint that was drawn from:
    ConstraintState constraint_at = 0;  ///< behind what was accepted
    bool complete = false;              ///< nothing may follow: this sequence ends with `stop`
    bool stuck = false;                 ///< no token may come, nor may it end here: it ends as such
};

struct StepResult {
    StepId id{};
    Nanos begin = 0, end = 0;
    Nanos mask = 0;                    ///< of it: all waited for the masks of constraints
    Nanos drafting = 0;                ///< of it, at its begin: a smaller model's part
    std::vector<ItemResult> items;     ///< as in the plan
    std::vector<TokenScore> accepted;  ///< next tokens: those of right drafts, and the one drawn behind them; logprob
                                       ///< and top only where asked for
    std::vector<TokenScore> scores;    ///< of known tokens, by position

    void clear() noexcept {
        mask = drafting = 0;
        items.clear();
        accepted.clear();
        scores.clear();
    }
};

}  // namespace cadans
