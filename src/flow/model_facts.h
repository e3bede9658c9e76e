// What planning must know of a resident model: counts and sizes, nothing else.
#pragma once

#include <cstdint>
#include <vector>

#include "base/ids.h"

namespace cadans {

inline constexpr uint32_t kMaxPageGroups = 2;

/// Layers that need the same keys. Token p1 needs p0 iff p1 - p0 < window (0: all before it).
struct PageGroupFacts {
    uint32_t window_tokens = 0;
    uint64_t bytes_per_page = 0;  ///< keys and values of kPageTokens tokens over all layers of the group
};

struct ModelFacts {
    ModelId model{};
    uint32_t vocab_size = 0;
    uint32_t context_tokens = 0;  ///< tokens one sequence may use, prompt and answer
    std::vector<PageGroupFacts> groups;
};

}  // namespace cadans
