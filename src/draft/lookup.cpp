#include "draft/lookup.h"

#include <algorithm>

namespace cadans::draft {

Guess look_up(std::span<const TokenId> known, std::span<TokenId> out) noexcept {
    if (known.size() < 2 || out.empty()) return {};
    const size_t last = known.size() - 1;
    const size_t stop = last - std::min<size_t>(last, kLookedBack);
    uint32_t longest = 0, comparisons = 0;
    size_t where = 0;
    for (size_t at = last; at-- > stop && longest < kLongestMatch && comparisons < kMostComparisons;) {
        if (known[at] != known[last]) continue;
        uint32_t match = 1;
        while (match < kLongestMatch && match <= at && known[at - match] == known[last - match]) match++;
        comparisons += match;
        if (match <= longest) continue;
        longest = match;
        where = at;
    }
    if (longest == 0) return {};
    // What follows may run into the end itself: then it goes round, as a repetition does.
    const size_t period = last - where;
    for (size_t i = 0; i < out.size(); i++) out[i] = known[where + 1 + i % period];
    return {static_cast<uint32_t>(out.size()), longest};
}

}  // namespace cadans::draft
