// A chunk of prompts by itself, then a word for everyone, in turns: what cutting gives without mixing.
#pragma once

#include "sched/policy.h"

namespace cadans::sched {

/// First come, first served; the chunk is limits.prefill_chunk. There to be compared with.
/// Source: Sarathi-Serve (Agrawal et al. 2024), the ablation "chunked prefills only" of table 6.
Policy alternate() noexcept;

}  // namespace cadans::sched
