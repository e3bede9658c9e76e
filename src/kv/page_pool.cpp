#include "kv/page_pool.h"

#include <algorithm>
#include <bit>

#include "base/check.h"

namespace cadans::kv {

PagePool::PagePool(uint64_t budget_bytes, const std::vector<GroupLimit>& groups) : budget_bytes_(budget_bytes) {
    groups_.reserve(groups.size());
    for (const GroupLimit& limit : groups) {
        check(limit.facts.bytes_per_page > 0, "a page has bytes");
        const bool continues = !groups_.empty() && groups_.back().model == limit.model;
        Group group;
        group.model = limit.model;
        group.index = continues ? static_cast<uint16_t>(groups_.back().index + 1) : uint16_t{0};
        group.facts = limit.facts;
        group.pages =
            static_cast<uint32_t>(std::min<uint64_t>(limit.pages_limit, budget_bytes / limit.facts.bytes_per_page));
        group.free.assign((group.pages + 63) / 64, ~uint64_t{0});
        if (group.pages % 64 != 0) group.free.back() = (uint64_t{1} << (group.pages % 64)) - 1;
        groups_.push_back(std::move(group));
    }
}

uint32_t PagePool::first_group_of(ModelId model) const {
    for (uint32_t i = 0; i < groups_.size(); i++) {
        if (groups_[i].model == model) return i;
    }
    check(false, "pages are asked for a model that has none");
    return 0;
}

uint32_t PagePool::free_pages(uint32_t group) const {
    const Group& g = groups_[group];
    return static_cast<uint32_t>(
        std::min<uint64_t>(g.pages - g.leased - g.cached, free_bytes() / g.facts.bytes_per_page));
}

PageId PagePool::take(uint32_t group) {
    Group& g = groups_[group];
    check(g.leased + g.cached < g.pages && g.facts.bytes_per_page <= free_bytes(),
          "a page is taken only where there is one");
    while (g.free[g.lowest_word] == 0) g.lowest_word++;
    uint64_t& word = g.free[g.lowest_word];
    const uint32_t page = g.lowest_word * 64 + static_cast<uint32_t>(std::countr_zero(word));
    word &= word - 1;
    g.leased++;
    leased_bytes_ += g.facts.bytes_per_page;
    return PageId{page};
}

void PagePool::give_back(uint32_t group, PageId page) {
    Group& g = groups_[group];
    check(index(page) < g.pages, "a page that comes back is one of the pool's");
    uint64_t& word = g.free[index(page) / 64];
    const uint64_t bit = uint64_t{1} << (index(page) % 64);
    check((word & bit) == 0, "a page comes back once");
    word |= bit;
    g.lowest_word = std::min(g.lowest_word, index(page) / 64);
    g.leased--;
    leased_bytes_ -= g.facts.bytes_per_page;
}

void PagePool::park(uint32_t group) {
    Group& g = groups_[group];
    g.leased--;
    g.cached++;
    leased_bytes_ -= g.facts.bytes_per_page;
    cached_bytes_ += g.facts.bytes_per_page;
}

void PagePool::unpark(uint32_t group) {
    Group& g = groups_[group];
    g.cached--;
    g.leased++;
    cached_bytes_ -= g.facts.bytes_per_page;
    leased_bytes_ += g.facts.bytes_per_page;
}

void PagePool::evict(uint32_t group, PageId page) {
    unpark(group);
    give_back(group, page);
}

void PagePool::occupancy(Occupancy& out) const {
    out.bytes_used = leased_bytes_;
    out.bytes_total = budget_bytes_;
    out.bytes_cached = cached_bytes_;
    out.groups.resize(groups_.size());
    for (uint32_t i = 0; i < groups_.size(); i++) {
        const Group& g = groups_[i];
        out.groups[i] = {g.model, GroupId{g.index}, g.facts.bytes_per_page, g.leased, free_pages(i), g.cached};
    }
}

void PagePool::check_invariants() const {
    uint64_t leased = 0, cached = 0;
    for (const Group& g : groups_) {
        uint64_t free = 0;
        for (uint32_t word = 0; word < g.free.size(); word++) {
            free += static_cast<uint64_t>(std::popcount(g.free[word]));
            check(word >= g.lowest_word || g.free[word] == 0, "no free page lies below the lowest word");
        }
        check(free + g.leased + g.cached == g.pages, "free, leased and cached pages are all pages");
        leased += g.leased * g.facts.bytes_per_page;
        cached += g.cached * g.facts.bytes_per_page;
    }
    check(leased == leased_bytes_, "the leased bytes are those of the leased pages");
    check(cached == cached_bytes_, "the cached bytes are those of the cached pages");
    check(leased + cached <= budget_bytes_, "pages stay within the budget");
}

}  // namespace cadans::kv
