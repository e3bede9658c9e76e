#include "kv/prefix_tree.h"

#include <algorithm>
#include <bit>

#include "base/check.h"
#include "base/random.h"

namespace cadans::kv {
namespace {

constexpr uint32_t kGhosts = 1 << 14;
constexpr uint64_t kFirstTick = uint64_t{1} << 32;  // so that an age can be taken off any tick
constexpr uint32_t kNotInHeap = UINT32_MAX;

/// A page 4 pages deeper is kept as if it had been used one page later: its rows look at more keys.
constexpr uint32_t kDepthShare = 4;

/// A window page inside a prompt goes as if it had not been used for this many pages.
constexpr uint64_t kWindowAge = 2048;

}  // namespace

PrefixTree::PrefixTree(PagePool& pool, uint32_t nodes_most)
    : pool_(pool),
      nodes_most_(nodes_most),
      tick_(kFirstTick),
      table_(std::bit_ceil(size_t{2} * nodes_most + 2), kNoNode),
      ghosts_(kGhosts) {
    nodes_.reserve(nodes_most);
    heap_.reserve(nodes_most);
}

NodeId PrefixTree::root(ModelId model, uint64_t scope) {
    const uint64_t hash = mix64(mix64(uint64_t{index(model)} + 1) ^ scope);
    const size_t mask = table_.size() - 1;
    for (size_t slot = hash & mask; table_[slot] != kNoNode; slot = (slot + 1) & mask) {
        const Node& node = at(table_[slot]);
        if (node.hash == hash && node.count == 0 && node.scope == scope && node.model == model) return table_[slot];
    }
    const NodeId made = make();
    if (made == kNoNode) return kNoNode;
    Node& node = at(made);
    node.hash = hash;
    node.scope = scope;
    node.model = model;
    node.first_group = pool_.first_group_of(model);
    node.groups = 0;
    while (node.first_group + node.groups < pool_.group_count() &&
           pool_.groups_[node.first_group + node.groups].model == model) {
        node.groups++;
    }
    table_add(made);
    return made;
}

NodeId PrefixTree::child(NodeId parent, std::span<const TokenId> page) const {
    const uint64_t hash = path_hash(at(parent).hash, page);
    const size_t mask = table_.size() - 1;
    for (size_t slot = hash & mask; table_[slot] != kNoNode; slot = (slot + 1) & mask) {
        const Node& node = at(table_[slot]);
        if (node.hash == hash && node.parent == parent && node.count == kPageTokens &&
            std::equal(page.begin(), page.end(), node.tokens.begin(), node.tokens.end())) {
            return table_[slot];
        }
    }
    return kNoNode;
}

PrefixTree::Nearest PrefixTree::nearest(NodeId parent, std::span<const TokenId> tokens) const {
    Nearest best;
    uint32_t seen = 0;
    for (NodeId id = at(parent).first_child; id != kNoNode && seen < kSiblingsSeen; id = at(id).next, seen++) {
        const Node& node = at(id);
        const auto most = std::min<size_t>(tokens.size(), node.count);
        uint32_t shared = 0;
        while (shared < most && node.tokens[shared] == tokens[shared]) shared++;
        if (best.node != kNoNode && shared <= best.shared) continue;
        bool whole = true;
        for (uint32_t g = 0; g < node.groups; g++) whole = whole && node.pages[g] != kNoPage;
        if (whole) best = {id, shared, shared < node.count};
    }
    return best;
}

bool PrefixTree::lost(NodeId parent, std::span<const TokenId> page) const {
    const uint64_t hash = path_hash(at(parent).hash, page);
    return ghosts_[hash % kGhosts] == hash;
}

NodeId PrefixTree::add(NodeId parent, std::span<const TokenId> tokens, std::span<const PageId> pages) {
    Node& above = at(parent);
    check(above.holds > 0 && hashed(above), "a page is added below one that is held and full");
    check(!tokens.empty() && tokens.size() <= kPageTokens, "a page holds one to kPageTokens tokens");
    check(pages.size() == above.groups, "a node has a page, or none, of each group");
    const NodeId made = make();
    if (made == kNoNode) return kNoNode;
    tick_++;
    Node& node = at(made);
    std::copy(tokens.begin(), tokens.end(), node.tokens.begin());
    node.count = static_cast<uint16_t>(tokens.size());
    node.hash = path_hash(above.hash, tokens);
    node.scope = above.scope;
    node.model = above.model;
    node.groups = above.groups;
    node.first_group = above.first_group;
    node.depth = above.count == 0 ? 0 : above.depth + 1;
    for (uint32_t g = 0; g < node.groups; g++) {
        node.pages[g] = pages[g];
        node.pins[g] = pages[g] != kNoPage;
        node.used[g] = tick_;
    }
    node.parent = parent;
    node.next = above.first_child;
    if (node.next != kNoNode) at(node.next).previous = made;
    above.first_child = made;
    if (hashed(node)) table_add(made);
    refresh(parent);
    absorb_beginnings(parent, tokens);
    return made;
}

/// Leaves that hold only the beginning of what has just been added bring nothing more.
void PrefixTree::absorb_beginnings(NodeId parent, std::span<const TokenId> tokens) {
    uint32_t seen = 0;
    NodeId id = at(at(parent).first_child).next;  // after the one just added
    while (id != kNoNode && seen++ < kSiblingsSeen) {
        Node& node = at(id);
        const NodeId next = node.next;
        if (node.count < tokens.size() && removable(node) &&
            std::equal(node.tokens.begin(), node.tokens.begin() + node.count, tokens.begin())) {
            evict_pages(node, true);
            remove(id);
        }
        id = next;
    }
}

void PrefixTree::give(NodeId id, uint32_t group, PageId page) {
    Node& node = at(id);
    check(node.pages[group] == kNoPage && node.pins[group] == 0, "a node takes only a page that it lacks");
    node.pages[group] = page;
    node.pins[group] = 1;
    refresh(id);
}

void PrefixTree::pin(NodeId id, uint32_t group) {
    Node& node = at(id);
    check(node.pages[group] != kNoPage, "only a page that is there is pinned");
    if (node.pins[group]++ == 0) {
        pool_.unpark(node.first_group + group);
        refresh(id);
    }
}

void PrefixTree::unpin(NodeId id, uint32_t group) {
    Node& node = at(id);
    check(node.pins[group] > 0, "a page is unpinned as often as it was pinned");
    node.used[group] = tick_;
    if (--node.pins[group] == 0) {
        pool_.park(node.first_group + group);
        refresh(id);
    }
}

void PrefixTree::hold(NodeId node) {
    if (at(node).holds++ == 0) refresh(node);
}

void PrefixTree::release(NodeId node) {
    check(at(node).holds > 0, "a node is released as often as it was held");
    if (--at(node).holds == 0) refresh(node);
}

bool PrefixTree::evict() {
    if (heap_.empty()) return false;
    const NodeId id = heap_.front();
    Node& node = at(id);
    const bool whole = removable(node);
    evict_pages(node, whole);
    if (whole) {
        ghosts_[node.hash % kGhosts] = node.hash;
        remove(id);
    } else {
        refresh(id);
    }
    return true;
}

void PrefixTree::forget(ModelId model) {
    for (uint32_t i = 0; i < nodes_.size(); i++) {
        // From a leaf upwards: a node that still has children goes with the last of them.
        for (NodeId id{i}; id != kNoNode && at(id).alive && at(id).model == model && removable(at(id));) {
            Node& node = at(id);
            const NodeId parent = node.parent;
            evict_pages(node, true);
            if (node.count > 0) ghosts_[node.hash % kGhosts] = node.hash;
            remove(id);
            id = parent;
        }
    }
}

void PrefixTree::evict_pages(Node& node, bool all) {
    for (uint32_t g = 0; g < node.groups; g++) {
        if (node.pages[g] == kNoPage || !(all || droppable(node, g))) continue;
        pool_.evict(node.first_group + g, node.pages[g]);
        node.pages[g] = kNoPage;
    }
}

NodeId PrefixTree::make() {
    if (unused_ == kNoNode && nodes_.size() < nodes_most_) {
        nodes_.emplace_back();
        unused_ = NodeId{static_cast<uint32_t>(nodes_.size() - 1)};
    }
    while (unused_ == kNoNode && evict()) {
    }
    if (unused_ == kNoNode) return kNoNode;
    const NodeId made = unused_;
    unused_ = at(made).next;
    Node fresh;
    fresh.alive = true;
    fresh.pages.fill(kNoPage);
    at(made) = fresh;
    alive_++;
    return made;
}

void PrefixTree::remove(NodeId id) {
    Node& node = at(id);
    heap_remove(node);
    if (hashed(node)) table_remove(id);
    if (node.previous != kNoNode) at(node.previous).next = node.next;
    if (node.next != kNoNode) at(node.next).previous = node.previous;
    const NodeId parent = node.parent;
    if (parent != kNoNode && at(parent).first_child == id) at(parent).first_child = node.next;
    node.alive = false;
    node.next = unused_;
    unused_ = id;
    alive_--;
    if (parent != kNoNode) refresh(parent);
}

uint64_t PrefixTree::path_hash(uint64_t parent, std::span<const TokenId> tokens) noexcept {
    uint64_t hash = mix64(parent + tokens.size());
    for (size_t i = 0; i + 1 < tokens.size(); i += 2) {
        hash = mix64(hash ^ (uint64_t{index(tokens[i])} | uint64_t{index(tokens[i + 1])} << 32));
    }
    if (tokens.size() % 2 != 0) hash = mix64(hash ^ index(tokens.back()));
    return hash;
}

void PrefixTree::table_add(NodeId node) {
    const size_t mask = table_.size() - 1;
    size_t slot = at(node).hash & mask;
    while (table_[slot] != kNoNode) slot = (slot + 1) & mask;
    table_[slot] = node;
}

/// Closes the gap by moving back those whose probes pass over it.
void PrefixTree::table_remove(NodeId node) {
    const size_t mask = table_.size() - 1;
    size_t gap = at(node).hash & mask;
    while (table_[gap] != node) gap = (gap + 1) & mask;
    for (size_t slot = (gap + 1) & mask; table_[slot] != kNoNode; slot = (slot + 1) & mask) {
        const size_t home = at(table_[slot]).hash & mask;
        if (((slot - home) & mask) < ((slot - gap) & mask)) continue;
        table_[gap] = table_[slot];
        gap = slot;
    }
    table_[gap] = kNoNode;
}

bool PrefixTree::removable(const Node& node) const {
    if (node.first_child != kNoNode || node.holds > 0) return false;
    return std::all_of(node.pins.begin(), node.pins.end(), [](uint32_t pins) { return pins == 0; });
}

bool PrefixTree::droppable(const Node& node, uint32_t group) const {
    return node.pages[group] != kNoPage && node.pins[group] == 0 &&
           pool_.facts(node.first_group + group).window_tokens != 0;
}

void PrefixTree::refresh(NodeId id) {
    Node& node = at(id);
    const bool whole = removable(node);
    uint32_t present = 0;
    uint64_t worth = 0;
    for (uint32_t g = 0; g < node.groups && node.count > 0; g++) {
        present += node.pages[g] != kNoPage;
        if (whole) worth = std::max(worth, node.used[g] + node.depth / kDepthShare);
        if (!whole && droppable(node, g)) worth = std::max(worth, node.used[g] - kWindowAge);
    }
    // An end that no prompt could go on from, and a root of nothing, are of no use.
    if (whole && (node.count == 0 || present < node.groups)) {
        evict_pages(node, true);
        remove(id);
        return;
    }
    if (worth == 0) {
        heap_remove(node);
        return;
    }
    node.worth = worth;
    if (node.heap_at == kNotInHeap) {
        heap_.push_back(id);
        node.heap_at = static_cast<uint32_t>(heap_.size() - 1);
    }
    heap_up(node.heap_at);
    heap_down(node.heap_at);
}

void PrefixTree::heap_set(uint32_t place, NodeId node) {
    heap_[place] = node;
    at(node).heap_at = place;
}

void PrefixTree::heap_up(uint32_t place) {
    const NodeId node = heap_[place];
    while (place > 0) {
        const uint32_t above = (place - 1) / 2;
        if (at(heap_[above]).worth <= at(node).worth) break;
        heap_set(place, heap_[above]);
        place = above;
    }
    heap_set(place, node);
}

void PrefixTree::heap_down(uint32_t place) {
    const NodeId node = heap_[place];
    const auto size = static_cast<uint32_t>(heap_.size());
    for (uint32_t below = 2 * place + 1; below < size; below = 2 * place + 1) {
        if (below + 1 < size && at(heap_[below + 1]).worth < at(heap_[below]).worth) below++;
        if (at(node).worth <= at(heap_[below]).worth) break;
        heap_set(place, heap_[below]);
        place = below;
    }
    heap_set(place, node);
}

void PrefixTree::heap_remove(Node& node) {
    if (node.heap_at == kNotInHeap) return;
    const uint32_t place = node.heap_at;
    node.heap_at = kNotInHeap;
    const NodeId last = heap_.back();
    heap_.pop_back();
    if (place == heap_.size()) return;
    heap_set(place, last);
    heap_up(place);
    heap_down(at(last).heap_at);
}

void PrefixTree::check_invariants() const {
    std::vector<uint32_t> cached(pool_.group_count());
    uint32_t alive = 0, in_heap = 0, in_table = 0;
    for (uint32_t i = 0; i < nodes_.size(); i++) {
        const Node& node = nodes_[i];
        if (!node.alive) continue;
        alive++;
        in_table += hashed(node);
        in_heap += node.heap_at != kNotInHeap;
        bool takes = removable(node);
        check(!takes || node.count > 0, "a root without children that nobody holds is gone");
        for (uint32_t g = 0; g < node.groups; g++) {
            check(node.pages[g] != kNoPage || node.pins[g] == 0, "only pages that are there are pinned");
            if (node.pages[g] != kNoPage && node.pins[g] == 0) cached[node.first_group + g]++;
            check(!removable(node) || node.pages[g] != kNoPage, "a leaf that nobody uses has all its pages");
            takes = takes || droppable(node, g);
        }
        check(takes == (node.heap_at != kNotInHeap), "the heap has all that can be evicted and nothing else");
        if (node.heap_at != kNotInHeap) {
            check(heap_[node.heap_at] == NodeId{i}, "a node knows its place in the heap");
            check(at(heap_[node.heap_at > 0 ? (node.heap_at - 1) / 2 : 0]).worth <= node.worth, "the least is on top");
        }
        if (node.count == 0) continue;
        const Node& above = at(node.parent);
        check(above.alive && hashed(above) && above.scope == node.scope && above.model == node.model,
              "a node is below a full one of its own scope");
        check(node.count == kPageTokens || node.first_child == kNoNode, "a page that is not full is a leaf");
        if (node.count == kPageTokens) {
            const NodeId found = child(node.parent, node.tokens);
            check(found == NodeId{i}, "a full page is found by its tokens, and is there once");
        }
        check(node.previous == kNoNode ? above.first_child == NodeId{i} : at(node.previous).next == NodeId{i},
              "children are linked");
    }
    check(alive == alive_ && in_heap == heap_.size(), "all nodes are counted");
    const auto filled = std::count_if(table_.begin(), table_.end(), [](NodeId node) { return node != kNoNode; });
    check(in_table == filled, "the table has what can be found by hash");
    for (uint32_t group = 0; group < cached.size(); group++) {
        check(cached[group] == pool_.cached_pages(group), "cached pages are those that nobody pins");
    }
}

}  // namespace cadans::kv
