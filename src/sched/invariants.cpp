// What must be true of a scheduler between any two of its calls: the list in this folder's README.
#include <algorithm>

#include "base/check.h"
#include "kv/page_needs.h"
#include "sched/scheduler.h"

namespace cadans::sched {
namespace {

bool ascends(const std::vector<Sequence*>& sequences) {
    return std::adjacent_find(sequences.begin(), sequences.end(), [](const Sequence* a, const Sequence* b) {
               return a->arrival >= b->arrival;
           }) == sequences.end();
}

void check_sequence(const Sequence& one) {
    check(one.computed <= one.known_count(), "1: computed <= known");
    check(one.known.size() <= one.known_max && one.known.capacity() >= one.known_max, "1: known <= its reserve");
    check(one.computed <= one.pages.tokens_held(), "2: what is computed has pages");
    if (one.standing == Standing::waiting) {
        check(one.computed == 0 && one.pages.bytes() == 0, "2: one who waits holds nothing");
        check(!one.draft_pages || one.draft_pages->bytes() == 0, "2: nor of the draft model");
    }
    check(one.draft_computed <= one.known_count(), "1: a draft model computes what is known");
    check(!one.draft_pages || one.draft_computed <= one.draft_pages->tokens_held(), "2: and has pages for it");
}

/// Counts again who holds what.
class Holders {
  public:
    Holders(const kv::PagePool& pool, const kv::PrefixTree* tree) : pool_(pool), tree_(tree) {
        for (uint32_t group = 0; group < pool.group_count(); group++) held_.emplace_back(pool.pages_in(group));
    }

    void add(const Sequence& one) {
        const uint32_t first = pool_.first_group_of(one.request.model);
        const uint32_t shared = one.pages.shared_tokens() / kPageTokens;
        for (uint32_t group = 0; group < one.pages.groups(); group++) {
            const PageRun run = one.pages.run(group);
            for (uint32_t i = 0; i < run.ids.size(); i++) {
                if (run.first_page + i >= shared) {
                    take(first + group, run.ids[i]);
                } else {
                    pin(one.pages.node(run.first_page + i), group, run.ids[i]);
                }
            }
            if (const kv::NodeId from = one.pages.copy_from(); from != kv::kNoNode) {
                pin(from, group, tree_->page(from, group));
            }
        }
        if (one.pages.tail() != kv::kNoNode) holds_[one.pages.tail()]++;
    }

    void add(const kv::PageLease& own, ModelId model) {
        const uint32_t first = pool_.first_group_of(model);
        for (uint32_t group = 0; group < own.groups(); group++)
            for (const PageId page : own.run(group).ids) take(first + group, page);
    }

    void check_counts() {
        for (const auto& [where, pins] : pins_) {
            check(pins == tree_->pins(where.first, where.second),
                  "2: a shared page is pinned once by each who holds it");
        }
        for (const auto& [node, holds] : holds_) check(holds == tree_->holds(node), "2: a node is held by its tails");
        for (uint32_t group = 0; group < pool_.group_count(); group++) {
            const auto count = std::count(held_[group].begin(), held_[group].end(), true);
            check(count == pool_.leased_pages(group), "2: free + leased + cached = all");
        }
    }

  private:
    void take(uint32_t group, PageId page) {
        check(!held_[group][index(page)], "2: a page has one holder, or is the tree's");
        held_[group][index(page)] = true;
    }
    void pin(kv::NodeId node, uint32_t group, PageId page) {
        check(tree_->page(node, group) == page, "2: a shared page is that of its node");
        if (pins_[{node, group}]++ == 0) take(tree_->first_group_of(node) + group, page);
    }

    const kv::PagePool& pool_;
    const kv::PrefixTree* tree_;
    std::vector<std::vector<bool>> held_;
    std::map<std::pair<kv::NodeId, uint32_t>, uint32_t> pins_;
    std::map<kv::NodeId, uint32_t> holds_;
};

void check_item(const StepItem& item, const Sequence& one, const kv::PagePool& pool) {
    check(one.standing != Standing::waiting, "4: a step in flight names only those who run");
    check(item.first == one.computed && item.count >= 1 && item.first + item.count <= one.known.size(),
          "3: an item computes the next known tokens");
    check(item.drafts == one.drafted && (item.drafts == 0 || item.first + item.count == one.known.size()),
          "3: drafts lie behind all that is known");
    check(item.known.data() == one.known.data() && item.known.size() == one.known.size(), "4: known stays put");
    for (uint32_t group = 0; group < item.group_count; group++) {
        const PageRun held = one.pages.run(group);
        const PageRun& run = item.pages[group];
        check(
            run.ids.data() == held.ids.data() && run.ids.size() == held.ids.size() && run.first_page == held.first_page,
            "4: the pages of a step in flight stay");
        const PageGroupFacts& facts = pool.facts(pool.first_group_of(item.model) + group);
        check(run.first_page <= kv::first_page_in_reach(facts, item.first), "4: all that is in reach is held");
        check(run.first_page + run.ids.size() >= kv::pages_for(item.first + item.count), "4: every row has its page");
    }
}

void check_drafting(const Drafting& drafting, const StepPlan& plan, const Sequence& one) {
    const StepItem& item = plan.items[drafting.item];
    const uint32_t known = one.known_count();
    check(drafting.first == one.draft_computed && drafting.count >= 1 && drafting.first + drafting.count <= known,
          "3: a draft model computes the next known tokens");
    check(drafting.guesses == 0 || (drafting.guesses == item.drafts && drafting.first + drafting.count == known),
          "3: it guesses behind all that is known, and all drafts of its item");
    check(drafting.guesses == 0 || drafting.out == one.known.data() + known, "4: its guesses go where drafts are");
    const uint32_t end = drafting.first + drafting.rows();
    for (uint32_t group = 0; group < drafting.group_count; group++) {
        const PageRun& run = drafting.pages[group];
        check(run.ids.data() == one.draft_pages->run(group).ids.data(), "4: the pages of a step in flight stay");
        check(run.first_page + run.ids.size() >= kv::pages_for(end), "4: every row has its page");
    }
}

}  // namespace

void Scheduler::check_invariants() const {
    pool_.check_invariants();
    for (const auto& [seq, one] : sequences_) check_sequence(one);
    if (tree_ != nullptr) tree_->check_invariants();
    Holders holders(pool_, tree_.get());
    for (const auto& [seq, one] : sequences_) {
        holders.add(one);
        if (one.draft_pages) holders.add(*one.draft_pages, house_.draft->model);
    }
    holders.check_counts();

    check(ascends(running_) && ascends(waiting_), "5: both lists ascend by arrival");
    check(running_.size() + waiting_.size() == sequences_.size(), "5: everybody runs or waits");
    check(running_.size() <= house_.limits.max_running, "3: no more run than may");
    for (const Sequence* one : running_) check(one->standing != Standing::waiting, "5: who runs is in running");
    for (const Sequence* one : waiting_) check(one->standing == Standing::waiting, "5: who waits is in waiting");

    if (!in_flight_) return;
    check(plan_.rows() <= house_.limits.max_rows, "3: rows <= budget");
    check(plan_.items.size() <= house_.limits.max_running, "3: items <= limit");
    for (const PageCopy& copy : plan_.copies) check(copy.from != copy.to, "4: a copy goes to a page of its own");
    uint32_t rows = 0;
    bool prefill_seen = false;
    for (const StepItem& item : plan_.items) {
        const auto found = sequences_.find(item.seq);
        check(found != sequences_.end(), "4: a sequence stays while a step names it");
        check_item(item, found->second, pool_);
        check(item.phase == Phase::prefill || !prefill_seen, "3: decode rows come first");
        prefill_seen = prefill_seen || item.phase == Phase::prefill;
        rows += item.count;
    }
    check(rows == plan_.rows(), "3: the rows of a plan are those of its items");
    uint32_t caught_up = 0;
    for (const Drafting& drafting : plan_.draftings) {
        check(drafting.item < plan_.items.size(), "3: a draft model guesses for an item of the plan");
        check_drafting(drafting, plan_, sequences_.find(plan_.items[drafting.item].seq)->second);
        caught_up += drafting.count;
    }
    check(caught_up <= house_.limits.max_rows, "3: a pass of the draft model keeps the rows of a step");
}

}  // namespace cadans::sched
