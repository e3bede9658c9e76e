#include "kv/page_lease.h"

#include <algorithm>

#include "base/check.h"
#include "kv/page_needs.h"

namespace cadans::kv {

PageLease::PageLease(PagePool& pool, PrefixTree* tree, Owner owner, uint32_t groups, uint32_t tokens_max)
    : pool_(pool), tree_(tree), owner_(owner), first_group_(pool.first_group_of(owner.model)), group_count_(groups) {
    check(groups >= 1 && groups <= kMaxPageGroups, "a model has one to kMaxPageGroups page groups");
    for (uint32_t g = 0; g < groups; g++) runs_[g].ids.resize(pages_for(tokens_max));
    if (caches()) chain_.resize(pages_for(tokens_max), kNoNode);
}

PageLease::~PageLease() { clear(); }

bool PageLease::grow(uint32_t tokens) {
    if (tokens <= tokens_held_) return true;
    const uint32_t end = pages_for(tokens);
    uint64_t bytes = 0;
    for (uint32_t g = 0; g < group_count_; g++) {
        check(end <= runs_[g].ids.size(), "a sequence never outgrows what it asked for");
        bytes += (end - runs_[g].end) * facts(g).bytes_per_page;
    }
    if (bytes > pool_.free_bytes() + pool_.cached_bytes()) return false;
    const auto fits = [&] {
        for (uint32_t g = 0; g < group_count_; g++) {
            if (end - runs_[g].end > pool_.free_pages(first_group_ + g)) return false;
        }
        return bytes <= pool_.free_bytes();
    };
    while (!fits()) {
        if (tree_ == nullptr || !tree_->evict()) return false;
    }
    for (uint32_t g = 0; g < group_count_; g++) {
        for (Run& run = runs_[g]; run.end < end; run.end++) run.ids[run.end] = pool_.take(first_group_ + g);
    }
    tokens_held_ = tokens;
    return true;
}

/// Stands at the root of its scope. False if the tree has no room even for that.
bool PageLease::open() {
    if (!caches()) return false;
    if (tail_ != kNoNode) return true;
    tail_ = tree_->root(owner_.model, owner_.scope);
    if (tail_ != kNoNode) tree_->hold(tail_);
    return tail_ != kNoNode;
}

PageLease::Reuse PageLease::adopt(std::span<const TokenId> known, uint32_t most, bool partly) {
    if (!open()) return {shared_tokens(), ReuseEnd::off, shared_tokens()};
    uint32_t seen = shared_, usable = shared_;
    NodeId node = tail_, usable_node = tail_;
    std::array<uint32_t, kMaxPageGroups> since{};  // pages from here to `seen` are all there
    for (uint32_t g = 0; g < group_count_; g++) since[g] = runs_[g].first;
    while ((seen + 1) * kPageTokens <= most) {
        const NodeId next = tree_->child(node, known.subspan(size_t{seen} * kPageTokens, kPageTokens));
        if (next == kNoNode) break;
        chain_[seen++] = node = next;
        bool all = true;
        for (uint32_t g = 0; g < group_count_; g++) {
            if (tree_->page(node, g) == PrefixTree::kNoPage) since[g] = seen;
            all = all && since[g] <= first_page_in_reach(facts(g), seen * kPageTokens);
        }
        if (!all) continue;
        usable = seen;
        usable_node = node;
    }
    const uint32_t begin = seen * kPageTokens;
    const std::span<const TokenId> rest = known.subspan(begin, most - begin);
    const PrefixTree::Nearest part = tree_->nearest(node, rest.first(std::min<size_t>(rest.size(), kPageTokens)));
    const bool nothing = seen == 0 && part.node == kNoNode;
    const bool lost = rest.size() >= kPageTokens && tree_->lost(node, rest.first(kPageTokens));

    if (usable > shared_) extend(usable_node, usable, usable * kPageTokens);
    Reuse reuse{usable * kPageTokens, ReuseEnd::evicted, usable * kPageTokens};
    if (usable < seen) return reuse;
    bool in_reach = partly && part.shared > 0;
    for (uint32_t g = 0; g < group_count_; g++) {
        in_reach = in_reach && since[g] <= first_page_in_reach(facts(g), begin + part.shared);
    }
    reuse.position = begin + part.shared;
    if (in_reach && take_part(part)) reuse.tokens = reuse.position;
    if (reuse.position == most)
        reuse.end = ReuseEnd::whole;
    else if (lost)
        reuse.end = ReuseEnd::evicted;
    else if (nothing)
        reuse.end = ReuseEnd::first_use;
    else
        reuse.end = part.goes_on ? ReuseEnd::differs : ReuseEnd::extends;
    return reuse;
}

bool PageLease::finds_more(std::span<const TokenId> known, uint32_t most) const {
    if (tail_ == kNoNode || shared_tokens() + kPageTokens > most) return false;
    return tree_->child(tail_, known.subspan(shared_tokens(), kPageTokens)) != kNoNode;
}

/// The shared part now ends at `tail`, after `pages` pages; only what `tokens` and later rows reach is held.
void PageLease::extend(NodeId tail, uint32_t pages, uint32_t tokens) {
    for (uint32_t g = 0; g < group_count_; g++) {
        Run& run = runs_[g];
        while (run.end > std::max(shared_, run.first)) drop(g, --run.end);
    }
    slide(tokens);
    tree_->hold(tail);
    tree_->release(tail_);
    tail_ = tail;
    for (uint32_t g = 0; g < group_count_; g++) {
        Run& run = runs_[g];
        run.first = std::max(run.first, first_page_in_reach(facts(g), tokens));
        run.end = std::max(run.end, run.first);
        for (; run.end < pages; run.end++) {
            tree_->pin(chain_[run.end], g);
            run.ids[run.end] = tree_->page(chain_[run.end], g);
        }
    }
    shared_ = pages;
    tokens_held_ = tokens;
}

/// A page of its own for the copy of what it shares with another. False if there is no room for one.
bool PageLease::take_part(const PrefixTree::Nearest& part) {
    for (uint32_t g = 0; g < group_count_; g++) tree_->pin(part.node, g);
    if (grow(shared_tokens() + part.shared)) {
        copy_from_ = part.node;
        return true;
    }
    for (uint32_t g = 0; g < group_count_; g++) tree_->unpin(part.node, g);
    return false;
}

PageCopy PageLease::copy(uint32_t group) const {
    return {owner_.model, GroupId{static_cast<uint16_t>(group)}, tree_->page(copy_from_, group),
            runs_[group].ids[shared_]};
}

void PageLease::copied() {
    if (copy_from_ == kNoNode) return;
    for (uint32_t g = 0; g < group_count_; g++) tree_->unpin(copy_from_, g);
    copy_from_ = kNoNode;
}

std::array<PageId, kMaxPageGroups> PageLease::own_pages(uint32_t page) const {
    std::array<PageId, kMaxPageGroups> pages{};
    for (uint32_t g = 0; g < group_count_; g++) {
        pages[g] = page >= runs_[g].first ? runs_[g].ids[page] : PrefixTree::kNoPage;
    }
    return pages;
}

void PageLease::publish(std::span<const TokenId> known, uint32_t computed) {
    while ((shared_ + 1) * kPageTokens <= computed && open()) {
        const auto tokens = known.subspan(shared_tokens(), kPageTokens);
        NodeId node = tree_->child(tail_, tokens);
        if (node == kNoNode) {
            const auto pages = own_pages(shared_);
            node = tree_->add(tail_, tokens, std::span(pages).first(group_count_));
            if (node == kNoNode) return;
            tree_->hold(node);
        } else {
            tree_->hold(node);
            for (uint32_t g = 0; g < group_count_; g++) {
                if (shared_ < runs_[g].first) continue;
                PageId& ours = runs_[g].ids[shared_];
                if (tree_->page(node, g) == PrefixTree::kNoPage) {
                    tree_->give(node, g, ours);
                } else {
                    pool_.give_back(first_group_ + g, ours);
                    tree_->pin(node, g);
                    ours = tree_->page(node, g);
                }
            }
        }
        tree_->release(tail_);
        chain_[shared_++] = tail_ = node;
    }
}

void PageLease::retire(std::span<const TokenId> known, uint32_t computed) {
    publish(known, computed);
    const uint32_t left = computed - std::min(computed, shared_tokens());
    // A copy that was never made has left the page without its tokens.
    if (left > 0 && left < kPageTokens && copy_from_ == kNoNode && open()) {
        const auto tokens = known.subspan(shared_tokens(), left);
        if (tree_->nearest(tail_, tokens).shared < left) {
            const auto pages = own_pages(shared_);
            const NodeId node = tree_->add(tail_, tokens, std::span(pages).first(group_count_));
            if (node != kNoNode) chain_[shared_++] = node;
        }
    }
    clear();
}

void PageLease::drop(uint32_t group, uint32_t page) {
    if (page < shared_) {
        tree_->unpin(chain_[page], group);
    } else {
        pool_.give_back(first_group_ + group, runs_[group].ids[page]);
    }
}

void PageLease::slide(uint32_t position) {
    for (uint32_t g = 0; g < group_count_; g++) {
        Run& run = runs_[g];
        const uint32_t reach = first_page_in_reach(facts(g), position);
        for (; run.first < reach && run.first < run.end; run.first++) drop(g, run.first);
    }
}

void PageLease::shrink(uint32_t tokens) {
    check(tokens >= shared_tokens(), "what is shared is not given back page by page");
    const uint32_t most = pages_for(tokens);
    for (uint32_t g = 0; g < group_count_; g++) {
        Run& run = runs_[g];
        while (run.end > std::max(most, run.first)) drop(g, --run.end);
    }
    tokens_held_ = std::min(tokens_held_, tokens);
}

void PageLease::clear() {
    copied();
    for (uint32_t g = 0; g < group_count_; g++) {
        Run& run = runs_[g];
        while (run.end > run.first) drop(g, --run.end);
        run.first = run.end = 0;
    }
    if (tail_ != kNoNode) tree_->release(tail_);
    tail_ = kNoNode;
    shared_ = tokens_held_ = 0;
}

PageRun PageLease::run(uint32_t group) const {
    const Run& run = runs_[group];
    return {run.first, std::span<const PageId>(run.ids).subspan(run.first, run.count())};
}

uint64_t PageLease::bytes() const noexcept {
    uint64_t bytes = 0;
    for (uint32_t g = 0; g < group_count_; g++) bytes += runs_[g].count() * facts(g).bytes_per_page;
    return bytes;
}

}  // namespace cadans::kv
