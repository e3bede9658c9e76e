// Which pages are free: page ids of every (model, page group), all under one byte budget.
#pragma once

#include <cstdint>
#include <vector>

#include "base/ids.h"
#include "flow/model_facts.h"
#include "flow/occupancy.h"

namespace cadans::kv {

/// Names of pages, never their bytes. Free + leased + cached = all holds exactly, per group in ids and over
/// all groups in bytes. A cached page is one that no lease holds and the prefix tree keeps. Leasing always takes the
/// lowest free id, so the pages ever touched stay few and the same calls give the same ids.
///
/// Thread rule: one thread. Cost: no allocation after construction.
class PagePool {
  public:
    /// Each group may use ids [0, limit): limit = min(budget / bytes per page, `pages_limit` of the group).
    struct GroupLimit {
        ModelId model{};
        PageGroupFacts facts;
        uint32_t pages_limit = 0;
    };

    /// `groups` holds each model's groups together, in the model's own order.
    PagePool(uint64_t budget_bytes, const std::vector<GroupLimit>& groups);

    uint32_t group_count() const noexcept { return static_cast<uint32_t>(groups_.size()); }

    /// The place of a model's first group; its others follow. The model must be known.
    uint32_t first_group_of(ModelId model) const;
    const PageGroupFacts& facts(uint32_t group) const { return groups_[group].facts; }

    /// How many ids the group has: the engine needs room for exactly these.
    uint32_t pages_in(uint32_t group) const { return groups_[group].pages; }

    uint32_t leased_pages(uint32_t group) const { return groups_[group].leased; }

    uint32_t cached_pages(uint32_t group) const { return groups_[group].cached; }

    /// Pages of this group that could be leased now if no other group leased any, and nothing was evicted.
    uint32_t free_pages(uint32_t group) const;

    uint64_t budget_bytes() const noexcept { return budget_bytes_; }
    uint64_t leased_bytes() const noexcept { return leased_bytes_; }
    uint64_t cached_bytes() const noexcept { return cached_bytes_; }
    uint64_t free_bytes() const noexcept { return budget_bytes_ - leased_bytes_ - cached_bytes_; }

    /// Fills bytes and groups of `out`; allocates only when `out` has never held as many groups.
    void occupancy(Occupancy& out) const;

    /// Recounts everything; stops the process where a count is off.
    void check_invariants() const;

  private:
    friend class PageLease;
    friend class PrefixTree;

    struct Group {
        ModelId model{};
        uint16_t index = 0;  ///< within its model
        PageGroupFacts facts;
        uint32_t pages = 0;
        uint32_t leased = 0;
        uint32_t cached = 0;
        uint32_t lowest_word = 0;    ///< no free bit before this word
        std::vector<uint64_t> free;  ///< bit set: the page is free
    };

    PageId take(uint32_t group);                  ///< there must be room
    void give_back(uint32_t group, PageId page);  ///< from a lease
    void park(uint32_t group);                    ///< a leased page becomes a cached one
    void unpark(uint32_t group);                  ///< and a leased one again
    void evict(uint32_t group, PageId page);      ///< a cached page becomes free

    uint64_t budget_bytes_;
    uint64_t leased_bytes_ = 0;
    uint64_t cached_bytes_ = 0;
    std::vector<Group> groups_;
};

}  // namespace cadans::kv
