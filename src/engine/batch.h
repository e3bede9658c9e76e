// The rows of one step, side by side: which token, at which position, for which item.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/kv_arena.h"
#include "flow/step.h"

namespace cadans::engine {

/// Row r of the step belongs to item item_of[r] and sits at that sequence's position position[r].
struct Batch {
    std::vector<uint32_t> token, position, item_of;
    std::vector<uint32_t> first_row;  ///< of each item; one more at the end
    std::span<const StepItem> items;

    void reserve(uint32_t rows, uint32_t item_count);
    /// Lays out the items' tokens in plan order.
    void assemble(std::span<const StepItem> plan_items);
    uint32_t rows() const noexcept { return static_cast<uint32_t>(token.size()); }
};

/// The page of an item's group that holds absolute page `page`.
inline PageId page_at(const StepItem& item, uint32_t group, uint32_t page) noexcept {
    const PageRun& run = item.pages[group];
    return run.ids[page - run.first_page];
}

}  // namespace cadans::engine
