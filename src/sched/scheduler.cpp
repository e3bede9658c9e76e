#include "sched/scheduler.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/check.h"
#include "kv/page_needs.h"
#include "sched/forecast.h"

namespace cadans::sched {
namespace {

/// Ids of a group in a house that caches: enough for any real model, few enough to keep books on.
constexpr uint64_t kCachedIds = 1 << 18;

/// No group needs more ids than max_running of the longest sequences can hold at once; a cache can use more.
kv::PagePool make_pool(const House& house) {
    std::vector<kv::PagePool::GroupLimit> groups;
    for (const ModelFacts& model : house.models) {
        check(!model.groups.empty() && model.groups.size() <= kMaxPageGroups,
              "a model has one to kMaxPageGroups page groups");
        for (const PageGroupFacts& group : model.groups) {
            const uint64_t pages =
                uint64_t{house.limits.max_running} * kv::most_pages(group, model.context_tokens, house.limits.max_rows);
            const uint64_t ids = house.prefix_cache ? std::max(pages, kCachedIds) : pages;
            groups.push_back({model.model, group, static_cast<uint32_t>(std::min<uint64_t>(ids, UINT32_MAX))});
        }
    }
    return kv::PagePool(house.page_bytes, groups);
}

/// A node for every page of each model's first group, and roots for as many askers as run.
std::unique_ptr<kv::PrefixTree> make_tree(const House& house, kv::PagePool& pool) {
    if (!house.prefix_cache) return nullptr;
    uint32_t nodes = 2 * house.limits.max_running + 64;
    for (const ModelFacts& model : house.models) nodes += pool.pages_in(pool.first_group_of(model.model));
    return std::make_unique<kv::PrefixTree>(pool, nodes);
}

/// The order of preemption: background first, of the same kind the newest.
bool gives_way_before(const Sequence& one, const Sequence& other) {
    const bool background = one.request.priority == Priority::background;
    const bool other_background = other.request.priority == Priority::background;
    return background != other_background ? background : one.arrival > other.arrival;
}

bool came_before(const Sequence* a, const Sequence* b) { return a->arrival < b->arrival; }

void insert_by_arrival(std::vector<Sequence*>& sequences, Sequence* one) {
    sequences.insert(std::lower_bound(sequences.begin(), sequences.end(), one, came_before), one);
}

void remove(std::vector<Sequence*>& sequences, const Sequence* one) {
    const auto found = std::find(sequences.begin(), sequences.end(), one);
    check(found != sequences.end(), "a sequence is in the list of its standing");
    sequences.erase(found);
}

}  // namespace

Scheduler::Scheduler(House house, Policy policy, Drafter* drafter)
    : house_(std::move(house)),
      policy_(policy),
      pool_(make_pool(house_)),
      tree_(make_tree(house_, pool_)),
      time_(house_.costs),
      drafter_(drafter) {
    check(policy_.next != nullptr && policy_.share != nullptr, "a policy has both its functions");
    const SchedulerLimits& limits = house_.limits;
    check(limits.max_running >= 1 && limits.max_running < limits.max_rows, "a step holds a decode row for everybody");
    check(limits.prefill_chunk >= 1, "a step holds a prompt token");
    running_.reserve(limits.max_running);
    running_view_.reserve(limits.max_running);
    viewed_.reserve(limits.max_running);
    shares_.reserve(limits.max_running);
    candidates_.reserve(limits.max_running);
    candidate_items_.reserve(limits.max_running);
    draft_order_.reserve(limits.max_rows);
    plan_.items.reserve(limits.max_running);
    plan_.offers.reserve(limits.max_running);
    plan_.copies.reserve(size_t{limits.max_running} * kMaxPageGroups);
}

Scheduler::~Scheduler() = default;

Status Scheduler::admit(SequenceRequest request, Nanos now, uint32_t arrived) {
    if (Status could = could_run(house_, request); !could) return could;
    if (arrived >= request.prompt.size()) {
        return bad_input("the keys and values of " + std::to_string(arrived) +
                             " tokens came along, and the prompt has " + std::to_string(request.prompt.size()) +
                             "; at least one is left to compute",
                         "arrived");
    }
    const SeqId seq = request.seq;
    const auto groups = static_cast<uint32_t>(house_.find(request.model)->groups.size());
    const auto [where, is_new] =
        sequences_.try_emplace(seq, std::move(request), pool_, tree_.get(), groups, arrivals_, now);
    check(is_new, "a sequence id is used once");
    arrivals_++;
    Sequence& sequence = where->second;
    sequence.arrived = arrived;
    sequence.account = time_.join(sequence.request.scope);
    const SequenceRequest& asked = sequence.request;
    sequence.guessed = drafter_ != nullptr && sequence.known_max > sequence.prompt &&
                       drafter_->begin({.seq = seq,
                                        .how = asked.speculation,
                                        .tokens_max = sequence.known_max,
                                        .model = asked.model,
                                        .scope = asked.scope,
                                        .recalls = asked.recalls});
    // All who run may be preempted, and then find room without allocating.
    const size_t most = waiting_.size() + 1 + house_.limits.max_running;
    if (waiting_.capacity() < most) waiting_.reserve(2 * most);
    if (waiting_view_.capacity() < most) waiting_view_.reserve(2 * most);
    waiting_.push_back(&where->second);
    return Ok{};
}

void Scheduler::cancel(SeqId seq, Nanos now, std::vector<Event>& events) {
    const auto found = sequences_.find(seq);
    if (found == sequences_.end()) return;
    Sequence& sequence = found->second;
    if (in_flight_ && sequence.planned_in == plans_) {
        sequence.standing = Standing::leaving;
    } else {
        finish(sequence, FinishReason::cancelled, StepId{0}, now, events);
    }
}

void Scheduler::cancel_all(Nanos now, std::vector<Event>& events) {
    for (auto at = sequences_.begin(); at != sequences_.end();) {
        const SeqId seq = at->first;
        ++at;  // before its node may go
        cancel(seq, now, events);
    }
}

void Scheduler::learn(ModelId model, const StepCost& cost) {
    if (house_.find(model) != nullptr) time_.learn(model, cost);
}

void Scheduler::forget(ModelId model) {
    for (const auto& [seq, sequence] : sequences_)
        check(sequence.request.model != model, "a model goes when nobody computes with it any more");
    if (tree_ != nullptr) tree_->forget(model);
}

const StepPlan* Scheduler::plan(Nanos now, std::vector<Event>& events) {
    if (in_flight_) return nullptr;
    start_waiting(now, events);
    if (running_.empty()) return nullptr;
    for (Sequence* sequence : running_) {
        const bool first = sequence->pages.tail() == kv::kNoNode;
        if (first || sequence->pages.finds_more(sequence->known, sequence->reusable())) reuse(*sequence, false);
    }

    plans_++;
    plan_.clear();
    plan_.id = StepId{plans_};
    fill(false, now, events);
    if (plan_.items.empty()) fill(true, now, events);
    if (plan_.items.empty()) {
        check(shares_.empty(), "who is given a share can move when all others give way");
        return nullptr;
    }
    add_drafts();
    in_flight_ = true;
    time_.planned(plan_);
    gap_promise_ = policy_.promise == nullptr ? 0 : policy_.promise(view(now));
    return &plan_;
}

SequenceView Scheduler::view_of(const Sequence& sequence) const noexcept {
    SequenceView view = sequence.view();
    view.lead = time_.lead(*sequence.account);
    return view;
}

View Scheduler::view(Nanos now) {
    viewed_.assign(running_.begin(), running_.end());
    running_view_.clear();
    for (const Sequence* sequence : running_) running_view_.push_back(view_of(*sequence));
    return {now, house_.limits, running_view_, waiting_view_, time_.costs(), time_.margin()};
}

void Scheduler::start_waiting(Nanos now, std::vector<Event>& events) {
    if (waiting_.empty() || running_.size() == house_.limits.max_running) return;
    waiting_view_.clear();
    for (const Sequence* sequence : waiting_) waiting_view_.push_back(view_of(*sequence));
    uint64_t promised = 0;
    for (const Sequence* sequence : running_) promised += promised_bytes(*sequence);

    while (!waiting_view_.empty() && running_.size() < house_.limits.max_running) {
        const uint32_t next = policy_.next(view(now));
        if (next == kNobody && !running_.empty()) return;
        check(next < waiting_view_.size(), "a policy chooses one of those who wait");
        Sequence& sequence = *waiting_[next];
        promised += promised_bytes(sequence);
        const bool fits = promised <= pool_.budget_bytes() || running_.empty();
        if (!fits && !background_gives_way(sequence, promised, now, events)) return;
        remove(waiting_, &sequence);
        waiting_view_.erase(waiting_view_.begin() + next);
        insert_by_arrival(running_, &sequence);
        sequence.standing = Standing::running;
        sequence.fresh = true;
        take_arrived(sequence);
        if (sequence.preempted) events.push_back(sequence.about(EventKind::resumed, now));
        sequence.preempted = false;
        if (!fits) return;  // who gave way is not in the view
    }
}

/// Makes room for one who is not background, where preempting background is enough; the newest goes first.
bool Scheduler::background_gives_way(const Sequence& asker, uint64_t& promised, Nanos now, std::vector<Event>& events) {
    if (asker.request.priority == Priority::background) return false;
    uint64_t least = promised;
    for (const Sequence* one : running_) {
        if (one->request.priority == Priority::background) least -= promised_bytes(*one);
    }
    const bool alone = least == promised_bytes(asker);  // then it may start whatever it needs
    if (least > pool_.budget_bytes() && !alone) return false;
    while (promised > pool_.budget_bytes()) {
        const auto last = std::find_if(running_.rbegin(), running_.rend(), [](const Sequence* one) {
            return one->request.priority == Priority::background;
        });
        if (last == running_.rend()) break;
        promised -= promised_bytes(**last);
        preempt(**last, now, events);
    }
    return true;
}

uint64_t Scheduler::promised_bytes(const Sequence& sequence) const {
    return sched::promised_bytes(house_, *house_.find(sequence.request.model), sequence.prompt,
                                 sequence.request.max_new_tokens, sequence.known_count());
}

/// Pages for the tokens whose keys and values came along: it begins behind them. Where there is no room for all of
/// them, or a prompt is to be scored, it computes them itself, as it does when it loses them later.
void Scheduler::take_arrived(Sequence& sequence) {
    const uint32_t tokens = std::exchange(sequence.arrived, 0);
    if (tokens == 0 || sequence.request.score_prompt || !sequence.pages.grow(tokens)) return;
    sequence.pages.slide(tokens);
    sequence.computed = sequence.computed_most = tokens;
}

/// Takes what is cached beyond what it has computed; only between pages, where its own part has nothing yet.
void Scheduler::reuse(Sequence& sequence, bool partly) {
    if (partly) sequence.fresh = false;
    const uint32_t from = sequence.computed;
    const uint32_t most = sequence.reusable();
    if (from != sequence.pages.shared_tokens() || from > most) return;
    kv::PageLease::Reuse found = sequence.pages.adopt(sequence.known, most, partly);
    if (!sequence.moved) {
        if (sequence.request.score_prompt) found.end = ReuseEnd::scored;
        sequence.reuse = found;
    }
    sequence.computed = found.tokens;
}

/// True if an item of the plan in the making computes the very page that this one would begin: then it waits for
/// that, instead of computing the same a second time.
bool Scheduler::page_is_on_its_way(const Sequence& sequence) const {
    const uint32_t begin = sequence.computed;
    const kv::NodeId tail = sequence.pages.tail();
    if (tail == kv::kNoNode || begin != sequence.pages.shared_tokens()) return false;
    if (begin + kPageTokens > sequence.reusable()) return false;
    const auto page = sequence.known.begin() + begin;
    return std::any_of(running_.begin(), running_.end(), [&](const Sequence* other) {
        return other != &sequence && other->planned_in == plans_ && other->pages.tail() == tail &&
               other->known_count() >= begin + kPageTokens &&
               std::equal(page, page + kPageTokens, other->known.begin() + begin);
    });
}

void Scheduler::fill(bool last_resort, Nanos now, std::vector<Event>& events) {
    shares_.clear();
    policy_.share(view(now), shares_);
    for (const Share& share : shares_) {
        check(share.sequence < viewed_.size(), "a policy shares among those who run");
        Sequence& sequence = *viewed_[share.sequence];
        if (sequence.standing != Standing::running) continue;  // preempted for one before it
        if (page_is_on_its_way(sequence)) continue;
        if (sequence.fresh) reuse(sequence, true);
        const uint32_t due = sequence.known_count() - sequence.computed;
        uint32_t rows = std::min({share.rows, due, house_.limits.max_rows - plan_.rows()});
        rows = make_room(sequence, rows, last_resort, now, events);
        if (rows > 0) add_item(sequence, rows);
    }
    // Decode and verify come first in a plan, whatever the order in which rows were given.
    auto first_prefill = plan_.items.begin();
    for (auto item = plan_.items.begin(); item != plan_.items.end(); ++item) {
        if (item->phase == Phase::prefill) continue;
        std::rotate(first_prefill, item, item + 1);
        ++first_prefill;
    }
}

/// Pages for `rows` more rows, from newer sequences if need be; the number of rows that got them.
uint32_t Scheduler::make_room(Sequence& asker, uint32_t rows, bool last_resort, Nanos now, std::vector<Event>& events) {
    while (rows > 0 && !asker.pages.grow(asker.computed + rows)) {
        Sequence* victim = victim_for(asker, last_resort);
        if (victim != nullptr) {
            preempt(*victim, now, events);
        } else {
            rows /= 2;
        }
    }
    return rows;
}

/// Background before others, of these the newest, of those that hold pages and have no row in this plan. It
/// stands behind the asker in that order and is not about to end; only as a last resort, when else nobody would
/// move, it may be anyone.
Sequence* Scheduler::victim_for(const Sequence& asker, bool last_resort) const {
    Sequence* victim = nullptr;
    for (auto at = running_.rbegin(); at != running_.rend(); ++at) {
        Sequence* one = *at;
        if (one == &asker || one->planned_in == plans_ || one->pages.bytes() == 0) continue;
        if (!last_resort && (!gives_way_before(*one, asker) || one->about_to_end())) continue;
        if (victim == nullptr || gives_way_before(*one, *victim)) victim = one;
    }
    return victim;
}

void Scheduler::preempt(Sequence& sequence, Nanos now, std::vector<Event>& events) {
    sequence.pages.retire(sequence.known, sequence.computed);
    sequence.computed = 0;
    sequence.preempted = true;
    sequence.standing = Standing::waiting;
    remove(running_, &sequence);
    insert_by_arrival(waiting_, &sequence);
    events.push_back(sequence.about(EventKind::preempted, now));
}

void Scheduler::add_item(Sequence& sequence, uint32_t rows) {
    check(sequence.planned_in != plans_, "a policy names a sequence once");
    sequence.planned_in = plans_;
    const uint32_t end = sequence.computed + rows;
    StepItem item;
    item.model = sequence.request.model;
    item.seq = sequence.request.seq;
    if (sequence.guessed && sequence.phase() == Phase::prefill) drafter_->read(item.seq, sequence.known);
    item.known = sequence.known;
    item.first = sequence.computed;
    item.count = rows;
    item.phase = sequence.phase();
    item.sample = end == sequence.known_count() && end < sequence.known_max;
    // The row before a token brings its score; rows of a recomputed prompt only where one is still owed.
    item.score = sequence.request.score_prompt && sequence.scored < sequence.prompt && end >= sequence.scored;
    item.sampling = &sequence.request.sampling;
    item.constraint = sequence.request.constraint.get();
    item.constraint_at = sequence.constraint_at;
    item.embedding = sequence.request.embedding.get();
    item.group_count = sequence.pages.groups();
    for (uint32_t group = 0; group < item.group_count; group++) {
        item.pages[group] = sequence.pages.run(group);
        if (sequence.pages.copy_from() != kv::kNoNode) plan_.copies.push_back(sequence.pages.copy(group));
    }
    plan_.items.push_back(item);
    plan_.rows_by_phase[static_cast<uint8_t>(item.phase)] += rows;
}

void Scheduler::finish(Sequence& sequence, FinishReason reason, StepId step, Nanos time, std::vector<Event>& events) {
    Event event = sequence.about(EventKind::finished, time);
    event.reason = reason;
    event.step = step;
    event.position = sequence.known_count();
    events.push_back(event);
    remove(sequence.standing == Standing::waiting ? waiting_ : running_, &sequence);
    time_.leave(sequence.account);
    if (sequence.guessed) {
        const std::span<const TokenId> all(sequence.known);
        drafter_->end(sequence.request.seq, all.subspan(sequence.prompt, sequence.known_count() - sequence.prompt));
    }
    // Of one that is cancelled, drafts were computed that nobody will know.
    sequence.pages.retire(sequence.known, std::min(sequence.computed, sequence.known_count()));
    const SeqId seq = sequence.request.seq;  // a copy: the original goes with its node
    sequences_.erase(seq);
}

void Scheduler::forecast(Nanos now, Outlook& out) {
    waiting_view_.clear();
    for (const Sequence* sequence : waiting_) waiting_view_.push_back(view_of(*sequence));
    sched::forecast(view(now), house_.models, policy_, out);
}

void Scheduler::occupancy(Occupancy& out) const {
    out.running = static_cast<uint32_t>(running_.size());
    out.waiting = static_cast<uint32_t>(waiting_.size());
    out.gap_promise = gap_promise_;
    pool_.occupancy(out);
}

}  // namespace cadans::sched
