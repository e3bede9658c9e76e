// Which pages hold which beginnings of prompts: a tree of pages, so that what was computed once is found again.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"
#include "flow/model_facts.h"
#include "kv/page_pool.h"

namespace cadans::kv {

/// A node of the tree; kNoNode is none.
enum class NodeId : uint32_t {};
inline constexpr NodeId kNoNode{UINT32_MAX};

/// Every node holds the tokens of one page and, per page group, the page with their keys and values, or none
/// where a window has let go of it. Its path from the root spells all tokens before: so two prompts meet in a
/// node only if they are equal up to its end, token by token. There is one root for each (model, scope), and
/// no way from one root into another's pages: nobody can learn what another scope has computed.
///
/// A leaf may hold fewer than kPageTokens tokens: the end of a finished sequence. Nodes with all of them are
/// found by a hash of their path, and their tokens are then compared; leaves with fewer are only seen by nearest().
///
/// Who uses a page *pins* it; who wants to add below a node *holds* it. What nobody pins is *cached*: counted
/// apart by the pool, and evicted when pages are short. evict() takes what is worth least: by the last use,
/// counted in pages added, later for pages deep in a prompt (they cost more to compute again), earlier for
/// window pages inside a prompt (only a prompt that parts just there would want them). Source: GreedyDual, Young
/// 1994, with the count of pages for its running offset.
///
/// Thread rule: one thread, the pool's. Cost: all is reserved at construction; root, child, add, pin and evict
/// are O(1) or O(log nodes), nearest() looks at kSiblingsSeen children at most.
class PrefixTree {
  public:
    static constexpr uint32_t kSiblingsSeen = 32;

    /// At most `nodes_most` nodes. The pool outlives the tree.
    PrefixTree(PagePool& pool, uint32_t nodes_most);
    PrefixTree(const PrefixTree&) = delete;
    PrefixTree& operator=(const PrefixTree&) = delete;

    /// Where all prompts of one asker begin. It is made if there is none, and goes when nobody holds it and nothing
    /// is below it: hold it at once. kNoNode if no node is free or can be evicted.
    NodeId root(ModelId model, uint64_t scope);

    /// The child with exactly these kPageTokens tokens, or kNoNode.
    NodeId child(NodeId parent, std::span<const TokenId> page) const;

    /// The child, full or not, that begins with the most of `tokens`.
    struct Nearest {
        NodeId node = kNoNode;
        uint32_t shared = 0;   ///< so many tokens
        bool goes_on = false;  ///< it has further tokens, which differ
    };
    Nearest nearest(NodeId parent, std::span<const TokenId> tokens) const;

    /// True if the page with these tokens was here and was evicted, as far as that is remembered.
    bool lost(NodeId parent, std::span<const TokenId> page) const;

    /// Adds a child. `pages` has one for each group of the model, or kNoPage; they were leased, are now the tree's,
    /// and each is pinned once by the caller. kNoNode, and nothing happened, if no node is free or can be evicted.
    /// The parent must be held, have all its tokens, and no child with the same tokens.
    NodeId add(NodeId parent, std::span<const TokenId> tokens, std::span<const PageId> pages);

    /// Gives a node the page of a group that it lacks; it is then pinned once.
    void give(NodeId node, uint32_t group, PageId page);

    PageId page(NodeId node, uint32_t group) const { return at(node).pages[group]; }  ///< or kNoPage
    uint32_t tokens(NodeId node) const { return at(node).count; }
    uint32_t pins(NodeId node, uint32_t group) const { return at(node).pins[group]; }
    uint32_t holds(NodeId node) const { return at(node).holds; }

    void pin(NodeId node, uint32_t group);
    void unpin(NodeId node, uint32_t group);
    void hold(NodeId node);
    void release(NodeId node);

    /// Makes at least one cached page free. False if there is none.
    bool evict();

    /// Makes every page of a model free, none of which may be in use: its keys and values are about to be lost. It may
    /// be called when nothing of the model is here. Cost: linear in nodes.
    void forget(ModelId model);

    uint32_t nodes() const noexcept { return alive_; }
    uint32_t first_group_of(NodeId node) const { return at(node).first_group; }

    /// Recounts everything; stops the process where something is off.
    void check_invariants() const;

    static constexpr PageId kNoPage{UINT32_MAX};

  private:
    struct Node {
        std::array<TokenId, kPageTokens> tokens{};
        std::array<PageId, kMaxPageGroups> pages{};
        std::array<uint32_t, kMaxPageGroups> pins{};
        std::array<uint64_t, kMaxPageGroups> used{};  ///< tick of the last unpin
        uint64_t hash = 0;                            ///< of the path with these tokens; of a root: of (model, scope)
        uint64_t scope = 0;
        uint64_t worth = 0;  ///< while in the heap: the least goes first
        NodeId parent = kNoNode, first_child = kNoNode, next = kNoNode, previous = kNoNode;
        uint32_t heap_at = UINT32_MAX;
        uint32_t holds = 0;
        uint32_t depth = 0;  ///< pages before it
        uint32_t first_group = 0;
        uint16_t count = 0;  ///< tokens; 0: a root
        uint16_t groups = 0;
        ModelId model{};
        bool alive = false;
    };

    Node& at(NodeId node) { return nodes_[index(node)]; }
    const Node& at(NodeId node) const { return nodes_[index(node)]; }

    NodeId make();
    void remove(NodeId node);  ///< its pages are gone already
    void evict_pages(Node& node, bool all);
    void absorb_beginnings(NodeId parent, std::span<const TokenId> tokens);

    static uint64_t path_hash(uint64_t parent, std::span<const TokenId> tokens) noexcept;
    bool hashed(const Node& node) const { return node.count == 0 || node.count == kPageTokens; }
    void table_add(NodeId node);
    void table_remove(NodeId node);

    bool removable(const Node& node) const;
    bool droppable(const Node& node, uint32_t group) const;
    void refresh(NodeId node);  ///< puts it into the heap, or out of it, as it now deserves
    void heap_set(uint32_t place, NodeId node);
    void heap_up(uint32_t place);
    void heap_down(uint32_t place);
    void heap_remove(Node& node);

    PagePool& pool_;
    std::vector<Node> nodes_;  ///< reserved for the most there can be, so never moved
    uint32_t nodes_most_;
    NodeId unused_ = kNoNode;  ///< the dead ones, linked by `next`
    uint32_t alive_ = 0;
    uint64_t tick_ = 0;             ///< pages ever added
    std::vector<NodeId> table_;     ///< open addressing by hash
    std::vector<NodeId> heap_;      ///< of nodes that eviction can take something from
    std::vector<uint64_t> ghosts_;  ///< hashes of paths that were evicted, newest in its place
};

}  // namespace cadans::kv
