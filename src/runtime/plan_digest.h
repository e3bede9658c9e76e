// A plan as one number: two plans that differ in anything but token values differ in it.
#pragma once

#include <cstdint>

#include "base/random.h"
#include "flow/step.h"

namespace cadans::runtime {

/// Who, which rows, with which pages, in which order. Cost: one pass over the plan's page ids.
inline uint64_t plan_digest(const StepPlan& plan) noexcept {
    uint64_t digest = index(plan.id);
    const auto add = [&](uint64_t part) { digest = mix64(digest ^ part); };
    for (const uint32_t rows : plan.rows_by_phase) add(rows);
    for (const PageCopy& copy : plan.copies) {
        add(uint64_t{index(copy.model)} << 16 | index(copy.group));
        add(uint64_t{index(copy.from)} << 32 | index(copy.to));
    }
    const auto add_pages = [&](uint32_t groups, const auto& pages) {
        for (uint32_t group = 0; group < groups; group++) {
            add(pages[group].first_page);
            for (const PageId page : pages[group].ids) add(index(page));
        }
    };
    for (const Drafting& drafting : plan.draftings) {
        add(uint64_t{drafting.item} << 32 | index(drafting.model));
        add(uint64_t{drafting.first} << 32 | drafting.count);
        add(drafting.guesses);
        add_pages(drafting.group_count, drafting.pages);
    }
    for (const StepItem& item : plan.items) {
        add(index(item.seq));
        add(index(item.model));
        add(uint64_t{item.first} << 32 | item.count);
        add(uint64_t{item.drafts} << 32 | static_cast<uint64_t>(item.phase) << 2 | uint64_t{item.sample} << 1 |
            item.score);
        add(item.known.size());
        add_pages(item.group_count, item.pages);
    }
    return digest;
}

}  // namespace cadans::runtime
