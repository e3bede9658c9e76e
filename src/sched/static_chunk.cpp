#include "sched/static_chunk.h"

#include <algorithm>

namespace cadans::sched {
namespace {

uint32_t first_come(const View&) { return 0; }

void decodes_then_a_chunk(const View& view, std::vector<Share>& shares) {
    uint32_t left = view.limits.max_rows;
    for (uint32_t i = 0; i < view.running.size() && left > 0; i++) {
        if (view.running[i].phase() == Phase::prefill) continue;
        shares.push_back({i, 1});
        left--;
    }
    left = std::min(left, view.limits.prefill_chunk);
    for (uint32_t i = 0; i < view.running.size() && left > 0; i++) {
        if (view.running[i].phase() != Phase::prefill) continue;
        const uint32_t rows = std::min(left, view.running[i].due());
        shares.push_back({i, rows});
        left -= rows;
    }
}

}  // namespace

Policy static_chunk() noexcept { return {"static-chunk", first_come, decodes_then_a_chunk}; }

}  // namespace cadans::sched
