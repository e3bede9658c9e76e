// The bytes of the pages of one model: where keys and values lie, not whose they are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/ids.h"
#include "flow/model_facts.h"
#include "kernels/kernel_table.h"
#include "model/spec.h"

namespace cadans::engine {

/// Layers sorted into page groups: group 0 sees everything, the last group has the window (where there is one).
struct PageGroups {
    struct Place {
        uint32_t group = 0;
        uint32_t slot = 0;  ///< which of the group's layers this is
    };
    std::vector<Place> of_layer;
    std::vector<PageGroupFacts> facts;  ///< per group

    static PageGroups of(const model::ModelSpec& spec, kernels::KvType kv = kernels::KvType::f16);
};

/// Room for the pages of all groups, reserved at once and touched page by page as they are used.
///
/// A page holds its layers one after the other, each layer its kv heads, each head its keys and then its
/// values (kernels::kv_page_bytes). Thread rule: immutable; the bytes behind it have one writer a page.
class KvArena {
  public:
    /// `pages_of_group[g]` pages in group g. Reserves address space only.
    KvArena(const model::ModelSpec& spec, kernels::KvType kv, const std::vector<uint32_t>& pages_of_group);
    ~KvArena();
    KvArena(const KvArena&) = delete;
    KvArena& operator=(const KvArena&) = delete;

    const PageGroups& groups() const noexcept { return groups_; }
    kernels::KvType kv() const noexcept { return kv_; }

    /// Keys and values of one page for one layer and kv head.
    std::byte* head(uint32_t layer, PageId page, uint32_t kv_head) const noexcept {
        const PageGroups::Place place = groups_.of_layer[layer];
        const Region& region = regions_[place.group];
        return region.base + index(page) * region.page_bytes + (place.slot * kv_heads_ + kv_head) * head_bytes_;
    }

    /// Makes the first `pages` pages of every group real memory that holds zeros, as if somebody had used them, and
    /// gives them back to the system. While no step runs.
    void fill(uint32_t pages) const;
    void drop(uint32_t pages) const;

    /// Copies the keys and values of a page over those of another, all layers of the group.
    void copy(GroupId group, PageId from, PageId to) const noexcept {
        const Region& region = regions_[index(group)];
        std::memcpy(region.base + index(to) * region.page_bytes, region.base + index(from) * region.page_bytes,
                    region.page_bytes);
    }

  private:
    struct Region {
        std::byte* base = nullptr;
        uint64_t page_bytes = 0;
        uint64_t bytes = 0;
    };
    PageGroups groups_;
    kernels::KvType kv_;
    uint64_t kv_heads_ = 0;
    uint64_t head_bytes_ = 0;
    std::vector<Region> regions_;
};

}  // namespace cadans::engine
