// The pages that one sequence holds, over all page groups of its model.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "flow/event.h"
#include "flow/step.h"
#include "kv/page_pool.h"
#include "kv/prefix_tree.h"

namespace cadans::kv {

/// Grows at the young end, slides at the old end where a window lets it, and gives everything back when it
/// ends. The id arrays are sized once, for `tokens_max`: runs stay where they are while the lease lives.
///
/// With a tree, its oldest pages are the tree's and may be others' too; they are only read. The rest is its own:
///
///     tokens   0 ........ shared_tokens() ........ tokens_held()
///              | pages of the tree, pinned | its own pages |
///
/// Thread rule: one thread, the pool's. The pool and the tree outlive the lease.
class PageLease {
  public:
    struct Owner {
        ModelId model{};
        uint64_t scope = 0;
        bool caches = true;  ///< takes from the tree and leaves for others
    };

    /// `tree` may be null: then nothing is cached.
    PageLease(PagePool& pool, PrefixTree* tree, Owner owner, uint32_t groups, uint32_t tokens_max);
    PageLease(PagePool& pool, ModelId model, uint32_t groups, uint32_t tokens_max)
        : PageLease(pool, nullptr, {model, 0, false}, groups, tokens_max) {}
    ~PageLease();
    PageLease(const PageLease&) = delete;
    PageLease& operator=(const PageLease&) = delete;

    /// Makes room for tokens [0, tokens) in every group (of a windowed one: for those still in reach), evicting
    /// what is cached if need be. All or nothing: false, and nothing changed, if there are not enough pages.
    bool grow(uint32_t tokens);

    /// How far a prompt was found, and why not further.
    struct Reuse {
        uint32_t tokens = 0;  ///< [0, tokens) are now held, with their keys and values
        ReuseEnd end = ReuseEnd::whole;
        uint32_t position = 0;  ///< of the first token that was not found
    };

    /// Takes what the tree has of known[0, most). Only between pages: what is computed so far is
    /// shared_tokens(); room beyond is given back. With `partly`, also the beginning of one more page, as a
    /// copy that copy() names from now on until copied(). Cost: one look-up a page.
    Reuse adopt(std::span<const TokenId> known, uint32_t most, bool partly);

    /// True if adopt() would find at least one more whole page. Cheap: one look-up.
    bool finds_more(std::span<const TokenId> known, uint32_t most) const;

    /// Pages whose tokens are all computed become the tree's; where it has them already, ours go back.
    void publish(std::span<const TokenId> known, uint32_t computed);

    /// publish(), the page that is not full too, and then clear(): the end of a sequence, or a pause.
    void retire(std::span<const TokenId> known, uint32_t computed);

    /// Gives back what no row from `position` on can reach.
    void slide(uint32_t position);

    /// Gives back its own pages behind token `tokens`, which is not before what is shared.
    void shrink(uint32_t tokens);

    /// Gives back everything; the lease is then as new.
    void clear();

    uint32_t groups() const noexcept { return group_count_; }
    uint32_t tokens_held() const noexcept { return tokens_held_; }  ///< room for [.., this)
    uint32_t shared_tokens() const noexcept { return shared_ * kPageTokens; }
    bool caches() const noexcept { return tree_ != nullptr && owner_.caches; }

    /// Valid until the next call that changes the lease.
    PageRun run(uint32_t group) const;

    uint64_t bytes() const noexcept;  ///< of the pages it holds, shared ones too
    uint32_t pages(uint32_t group) const { return runs_[group].count(); }

    /// The node of the last shared page, or the root; kNoNode before anything was looked for.
    NodeId tail() const noexcept { return tail_; }
    NodeId node(uint32_t page) const { return chain_[page]; }  ///< of a shared page

    /// The node whose pages must be copied to ours before the next row is computed; kNoNode if none.
    NodeId copy_from() const noexcept { return copy_from_; }
    PageCopy copy(uint32_t group) const;
    void copied();

  private:
    struct Run {
        std::vector<PageId> ids;  ///< by absolute page; those before `first` are given back
        uint32_t first = 0;
        uint32_t end = 0;
        uint32_t count() const noexcept { return end - first; }
    };

    const PageGroupFacts& facts(uint32_t group) const { return pool_.facts(first_group_ + group); }
    bool open();
    void drop(uint32_t group, uint32_t page);
    void extend(NodeId tail, uint32_t pages, uint32_t tokens);
    bool take_part(const PrefixTree::Nearest& part);
    std::array<PageId, kMaxPageGroups> own_pages(uint32_t page) const;

    PagePool& pool_;
    PrefixTree* tree_;
    Owner owner_;
    uint32_t first_group_;
    uint32_t group_count_;
    uint32_t tokens_held_ = 0;
    uint32_t shared_ = 0;  ///< pages [.., this) are the tree's
    NodeId tail_ = kNoNode;
    NodeId copy_from_ = kNoNode;
    std::vector<NodeId> chain_;  ///< by absolute page, of the shared ones
    std::array<Run, kMaxPageGroups> runs_;
};

}  // namespace cadans::kv
