#include "kv/page_needs.h"

#include <algorithm>

namespace cadans::kv {

uint32_t most_pages(const PageGroupFacts& group, uint32_t tokens, uint32_t chunk) noexcept {
    if (group.window_tokens == 0) return pages_for(tokens);
    // A step's rows reach window - 1 tokens back. That many tokens in a row, wherever they begin, touch at
    // most (reach - 2) / kPageTokens + 2 pages.
    const uint64_t reach = uint64_t{group.window_tokens} - 1 + chunk;
    const uint64_t touched = reach < 2 ? 1 : (reach - 2) / kPageTokens + 2;
    return static_cast<uint32_t>(std::min<uint64_t>(touched, pages_for(tokens)));
}

uint64_t most_bytes(const ModelFacts& model, uint32_t tokens, uint32_t chunk) noexcept {
    uint64_t bytes = 0;
    for (const PageGroupFacts& group : model.groups) bytes += most_pages(group, tokens, chunk) * group.bytes_per_page;
    return bytes;
}

uint32_t largest_fit(const ModelFacts& model, uint32_t chunk, uint64_t budget_bytes) noexcept {
    uint32_t fits = 0, beyond = model.context_tokens;
    if (most_bytes(model, beyond, chunk) <= budget_bytes) return beyond;
    while (beyond - fits > 1) {
        const uint32_t middle = fits + (beyond - fits) / 2;
        (most_bytes(model, middle, chunk) <= budget_bytes ? fits : beyond) = middle;
    }
    return fits;
}

}  // namespace cadans::kv
