// Who runs next: the one place where that is decided.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "flow/drafter.h"
#include "flow/event.h"
#include "flow/forecast.h"
#include "flow/occupancy.h"
#include "flow/request.h"
#include "flow/step.h"
#include "kv/page_pool.h"
#include "kv/prefix_tree.h"
#include "sched/admission.h"
#include "sched/draft_choice.h"
#include "sched/machine_time.h"
#include "sched/policy.h"
#include "sched/sequence.h"

namespace cadans::sched {

/// No wake-up is wanted: only a new request or a finished step changes anything.
inline constexpr Nanos kNever = std::numeric_limits<Nanos>::max();

/// Continuous batching over paged keys and values. Sequences are admitted, wait for pages, run in steps,
/// lose their pages when there are too few (and compute them again later), and end with exactly one
/// `finished` event. Time is an argument and only labels; the same calls give the same bytes.
///
/// Thread rule: one thread. Cost: admit allocates; plan and commit of a warm step do not.
class Scheduler {
  public:
    /// The policy's functions must be set. House limits as in limits.h. A drafter (null: nothing is guessed) outlives
    /// the scheduler.
    Scheduler(House house, Policy policy, Drafter* drafter = nullptr);
    ~Scheduler();
    Scheduler(const Scheduler&) = delete;
    Scheduler& operator=(const Scheduler&) = delete;

    /// The sequence waits from now on. Its id must be new. `arrived`: the first so many tokens of the prompt, but not
    /// all, were computed elsewhere, and their keys and values came along: when it starts it gets pages for them and
    /// begins behind them. Errors: as could_run(), bad_input for `arrived`; nothing is then kept.
    Status admit(SequenceRequest request, Nanos now, uint32_t arrived = 0);

    /// Ends a sequence with `cancelled`: now, or, where a step in flight names it, when that is committed.
    /// An unknown id is one that has ended already: nothing happens.
    void cancel(SeqId seq, Nanos now, std::vector<Event>& events);

    /// Ends every sequence as cancel() does.
    void cancel_all(Nanos now, std::vector<Event>& events);

    /// The weights of a model came, and its steps were measured: it is predicted by that from now on. Its number is one
    /// of the house. Never in a step.
    void learn(ModelId model, const StepCost& cost);

    /// The weights of a model went, and with them the keys and values of its pages: cached prefixes are forgotten. No
    /// sequence of it is inside.
    void forget(ModelId model);

    /// The next step, or null when nobody can run or a step is in flight. Appends preempted and resumed.
    /// The plan and all it borrows stay unchanged until its commit.
    const StepPlan* plan(Nanos now, std::vector<Event>& events);

    /// Takes in the result of the step in flight. Appends step_begin, then for each item step_share,
    /// prompt_scores, tokens and, for those that end, finished. Times of events are those of the result.
    void commit(const StepResult& result, Nanos now, std::vector<Event>& events);

    /// When plan() would answer differently though nothing else happened; kNever if never.
    Nanos next_wakeup() const noexcept { return kNever; }

    bool step_in_flight() const noexcept { return in_flight_; }
    bool idle() const noexcept { return sequences_.empty(); }
    const House& house() const noexcept { return house_; }
    const kv::PagePool& pages() const noexcept { return pool_; }
    const kv::PrefixTree* prefixes() const noexcept { return tree_.get(); }  ///< null without a prefix cache
    const MachineTime& time() const noexcept { return time_; }
    void occupancy(Occupancy& out) const;

    /// When those without a word will have one: see forecast.h. Between any two other calls.
    void forecast(Nanos now, Outlook& out);

    /// The six invariants of this folder's README; stops the process where one is broken.
    void check_invariants() const;

  private:
    House house_;
    Policy policy_;
    kv::PagePool pool_;
    std::unique_ptr<kv::PrefixTree> tree_;
    MachineTime time_;
    Drafter* drafter_;
    std::map<SeqId, Sequence> sequences_;
    std::vector<Sequence*> running_;  ///< ascending by arrival, as is waiting_
    std::vector<Sequence*> waiting_;
    std::vector<SequenceView> running_view_, waiting_view_;
    std::vector<Sequence*> viewed_;  ///< the sequences behind running_view_
    std::vector<Share> shares_;
    std::vector<DraftCandidate> candidates_;
    std::vector<uint32_t> candidate_items_, draft_order_;
    std::vector<StepShape> shapes_;  ///< by ModelId
    std::array<StepShape, kMostDrafts> passes_{};
    uint32_t draft_rows_ = 0;                       ///< of the plan in the making: that a draft model catches up with
    uint32_t house_chance_ = ModelTally::kAtFirst;  ///< where a newcomer's record of the draft model begins
    StepPlan plan_;
    bool in_flight_ = false;
    Micros gap_promise_ = 0;
    uint64_t arrivals_ = 0;
    uint64_t plans_ = 0;

    // Planning.
    SequenceView view_of(const Sequence& sequence) const noexcept;
    View view(Nanos now);
    void start_waiting(Nanos now, std::vector<Event>& events);
    uint64_t promised_bytes(const Sequence& sequence) const;
    void take_arrived(Sequence& sequence);
    void reuse(Sequence& sequence, bool partly);
    bool page_is_on_its_way(const Sequence& sequence) const;
    bool background_gives_way(const Sequence& asker, uint64_t& promised, Nanos now, std::vector<Event>& events);
    void fill(bool last_resort, Nanos now, std::vector<Event>& events);
    uint32_t make_room(Sequence& asker, uint32_t rows, bool last_resort, Nanos now, std::vector<Event>& events);
    Sequence* victim_for(const Sequence& asker, bool last_resort) const;
    void preempt(Sequence& sequence, Nanos now, std::vector<Event>& events);
    void add_item(Sequence& sequence, uint32_t rows);

    // Drafts.
    void add_drafts();
    void guess(Sequence& sequence);
    void choose(uint32_t tokens, Micros within);
    void take_in(uint32_t number, DraftCandidate& chosen);
    void learn_from(Sequence& sequence, const ItemResult& got, const StepResult& result);

    // A draft model's part.
    uint32_t due_of_model(const Sequence& sequence) const noexcept;
    uint64_t gain_of_model(const Sequence& sequence, uint32_t chance) const;
    DraftHold model_hold(const Sequence& sequence) const;
    void ask_model(Sequence& sequence, DraftCandidate& one);
    void catch_up(Micros within);
    void add_drafting(Sequence& sequence, uint32_t item, uint32_t rows, uint32_t guesses);
    void learn_from_model(Sequence& sequence, uint32_t drawn);
    void forget_model(const Sequence& sequence);
    bool drop_draft_pages();

    // Taking in a result.
    void commit_item(const StepItem& item, const ItemResult& got, const StepResult& result, std::vector<Event>& events);
    void finish(Sequence& sequence, FinishReason reason, StepId step, Nanos time, std::vector<Event>& events);
};

}  // namespace cadans::sched
