// The pages that one sequence holds, over all page groups of its model.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "flow/step.h"
#include "kv/page_pool.h"

namespace cadans::kv {

/// Grows at the young end, slides at the old end where a window lets it, and gives everything back when it
/// ends. The id arrays are sized once, for `tokens_max`: runs stay where they are while the lease lives.
///
/// Thread rule: one thread, the pool's. The pool outlives the lease.
class PageLease {
  public:
    PageLease(PagePool& pool, ModelId model, uint32_t groups, uint32_t tokens_max);
    ~PageLease();
    PageLease(const PageLease&) = delete;
    PageLease& operator=(const PageLease&) = delete;

    /// Makes room for tokens [0, tokens) in every group (of a windowed one: for those still in reach).
    /// All or nothing: false, and nothing changed, if the pool has not enough pages.
    bool grow(uint32_t tokens);

    /// Gives back what no row from `position` on can reach.
    void slide(uint32_t position);

    /// Gives back everything; the lease is then as new.
    void clear();

    uint32_t groups() const noexcept { return group_count_; }
    uint32_t tokens_held() const noexcept { return tokens_held_; }  ///< room for [.., this)

    /// Valid until the next grow, slide or clear.
    PageRun run(uint32_t group) const;

    uint64_t bytes() const noexcept;
    uint32_t pages(uint32_t group) const { return runs_[group].count(); }

  private:
    struct Run {
        std::vector<PageId> ids;  ///< by absolute page; those before `first` are given back
        uint32_t first = 0;
        uint32_t end = 0;
        uint32_t count() const noexcept { return end - first; }
    };

    PagePool& pool_;
    uint32_t first_group_;
    uint32_t group_count_;
    uint32_t tokens_held_ = 0;
    std::array<Run, kMaxPageGroups> runs_;
};

}  // namespace cadans::kv
