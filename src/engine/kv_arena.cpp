#include "engine/kv_arena.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "kernels/table.h"

namespace cadans::engine {

PageGroups PageGroups::of(const model::ModelSpec& spec, kernels::KvType kv) {
    PageGroups groups;
    const uint64_t layer_bytes = spec.kv_heads * kernels::kv_page_bytes(spec.head_dim, kv);
    uint32_t count[2] = {0, 0};  // full, windowed
    for (const uint8_t windowed : spec.windowed) count[windowed != 0]++;
    uint32_t group_of[2] = {0, 0};
    for (const uint32_t kind : {0u, 1u}) {
        if (count[kind] == 0) continue;
        group_of[kind] = static_cast<uint32_t>(groups.facts.size());
        groups.facts.push_back({kind == 1 ? spec.window : 0, count[kind] * layer_bytes});
    }
    uint32_t next[2] = {0, 0};
    for (const uint8_t windowed : spec.windowed) {
        const uint32_t kind = windowed != 0;
        groups.of_layer.push_back({group_of[kind], next[kind]++});
    }
    return groups;
}

KvArena::KvArena(const model::ModelSpec& spec, kernels::KvType kv, const std::vector<uint32_t>& pages_of_group)
    : groups_(PageGroups::of(spec, kv)),
      kv_(kv),
      kv_heads_(spec.kv_heads),
      head_bytes_(kernels::kv_page_bytes(spec.head_dim, kv)) {
    check(pages_of_group.size() == groups_.facts.size(), "a number of pages for each group");
    for (size_t g = 0; g < pages_of_group.size(); g++) {
        Region region{nullptr, groups_.facts[g].bytes_per_page, 0};
        region.bytes = region.page_bytes * pages_of_group[g];
        void* base =
            ::mmap(nullptr, region.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        check(base != MAP_FAILED, "address space for the pages");
        ::madvise(base, region.bytes, MADV_HUGEPAGE);  // best effort
        region.base = static_cast<std::byte*>(base);
        regions_.push_back(region);
    }
}

void KvArena::fill(uint32_t pages) const {
    for (const Region& region : regions_)
        std::memset(region.base, 0, std::min(region.bytes, pages * region.page_bytes));
}

void KvArena::drop(uint32_t pages) const {
    for (const Region& region : regions_) {
        ::madvise(region.base, std::min(region.bytes, pages * region.page_bytes), MADV_DONTNEED);  // best effort
    }
}

KvArena::~KvArena() {
    for (const Region& region : regions_) ::munmap(region.base, region.bytes);
}

}  // namespace cadans::engine
