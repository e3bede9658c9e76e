// How many pages a sequence needs: pure arithmetic over page groups, known before any page is taken.
#pragma once

#include <cstdint>

#include "flow/model_facts.h"

namespace cadans::kv {

/// Pages that hold tokens [0, tokens) where nothing is dropped.
constexpr uint32_t pages_for(uint32_t tokens) noexcept { return tokens / kPageTokens + (tokens % kPageTokens != 0); }

/// The oldest page that the row at `position` may still look into; pages before it are out of reach for
/// this and every later row. 0 for a group without a window.
constexpr uint32_t first_page_in_reach(const PageGroupFacts& group, uint32_t position) noexcept {
    if (group.window_tokens == 0 || position < group.window_tokens) return 0;
    return (position - group.window_tokens + 1) / kPageTokens;
}

/// The most pages of `group` that a sequence of `tokens` tokens ever holds at once, when it is computed in
/// steps of at most `chunk` (at least 1) tokens.
uint32_t most_pages(const PageGroupFacts& group, uint32_t tokens, uint32_t chunk) noexcept;

/// The same in bytes, over all groups of the model.
uint64_t most_bytes(const ModelFacts& model, uint32_t tokens, uint32_t chunk) noexcept;

/// The longest sequence, in tokens and at most the model's context, that fits `budget_bytes` when it has
/// them to itself. 0 if not even one page of each group fits.
uint32_t largest_fit(const ModelFacts& model, uint32_t chunk, uint64_t budget_bytes) noexcept;

}  // namespace cadans::kv
