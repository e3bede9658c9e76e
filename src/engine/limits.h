// How large a step may be, and what a page holds: every buffer of the engine is sized from this once.
#pragma once

#include <cstdint>

#include "kernels/kernel_table.h"

namespace cadans::engine {

struct EngineLimits {
    uint32_t max_rows = 256;                    ///< tokens of one step, over all items
    uint32_t max_items = 64;                    ///< sequences in one step
    uint32_t max_scores = 256;                  ///< prompt tokens scored in one step, at most max_rows
    uint32_t max_context_tokens = 0;            ///< longest sequence
    kernels::KvType kv = kernels::KvType::f16;  ///< what keys and values are kept as
};

/// Rows whose logits are held at the same time: few, since one row of a large vocabulary is a megabyte.
inline constexpr uint32_t kLogitRows = 16;

}  // namespace cadans::engine
