#include "kv/page_lease.h"

#include "base/check.h"
#include "kv/page_needs.h"

namespace cadans::kv {

PageLease::PageLease(PagePool& pool, ModelId model, uint32_t groups, uint32_t tokens_max)
    : pool_(pool), first_group_(pool.first_group_of(model)), group_count_(groups) {
    check(groups >= 1 && groups <= kMaxPageGroups, "a model has one to kMaxPageGroups page groups");
    for (uint32_t g = 0; g < groups; g++) runs_[g].ids.resize(pages_for(tokens_max));
}

PageLease::~PageLease() { clear(); }

bool PageLease::grow(uint32_t tokens) {
    if (tokens <= tokens_held_) return true;
    const uint32_t end = pages_for(tokens);
    uint64_t bytes = 0;
    for (uint32_t g = 0; g < group_count_; g++) {
        check(end <= runs_[g].ids.size(), "a sequence never outgrows what it asked for");
        const uint32_t more = end - runs_[g].end;
        if (more > pool_.free_pages(first_group_ + g)) return false;
        bytes += more * pool_.facts(first_group_ + g).bytes_per_page;
    }
    if (bytes > pool_.free_bytes()) return false;
    for (uint32_t g = 0; g < group_count_; g++) {
        for (Run& run = runs_[g]; run.end < end; run.end++) run.ids[run.end] = pool_.take(first_group_ + g);
    }
    tokens_held_ = tokens;
    return true;
}

void PageLease::slide(uint32_t position) {
    for (uint32_t g = 0; g < group_count_; g++) {
        Run& run = runs_[g];
        const uint32_t reach = first_page_in_reach(pool_.facts(first_group_ + g), position);
        for (; run.first < reach && run.first < run.end; run.first++) {
            pool_.give_back(first_group_ + g, run.ids[run.first]);
        }
    }
}

void PageLease::clear() {
    for (uint32_t g = 0; g < group_count_; g++) {
        Run& run = runs_[g];
        for (; run.first < run.end; run.first++) pool_.give_back(first_group_ + g, run.ids[run.first]);
        run.first = run.end = 0;
    }
    tokens_held_ = 0;
}

PageRun PageLease::run(uint32_t group) const {
    const Run& run = runs_[group];
    return {run.first, std::span<const PageId>(run.ids).subspan(run.first, run.count())};
}

uint64_t PageLease::bytes() const noexcept {
    uint64_t bytes = 0;
    for (uint32_t g = 0; g < group_count_; g++) {
        bytes += runs_[g].count() * pool_.facts(first_group_ + g).bytes_per_page;
    }
    return bytes;
}

}  // namespace cadans::kv
