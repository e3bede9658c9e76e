// What the simple policies have in common: decode rows for all, prompts in order of arrival.
#pragma once

#include <algorithm>
#include <vector>

#include "sched/policy.h"

namespace cadans::sched {

inline uint32_t first_come(const View&) { return 0; }

/// A row for everyone who decodes, at most `rows`; how many rows are left.
inline uint32_t share_decodes(const View& view, uint32_t rows, std::vector<Share>& shares) {
    for (uint32_t i = 0; i < view.running.size() && rows > 0; i++) {
        if (view.running[i].phase() == Phase::prefill) continue;
        shares.push_back({i, 1});
        rows--;
    }
    return rows;
}

/// Up to `rows` prompt rows, first come, first served; how many rows are left.
inline uint32_t share_prompts(const View& view, uint32_t rows, std::vector<Share>& shares) {
    for (uint32_t i = 0; i < view.running.size() && rows > 0; i++) {
        if (view.running[i].phase() != Phase::prefill) continue;
        const uint32_t some = std::min(rows, view.running[i].due());
        shares.push_back({i, some});
        rows -= some;
    }
    return rows;
}

}  // namespace cadans::sched
