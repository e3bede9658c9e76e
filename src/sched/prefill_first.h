// The policy of whole prompts first: while one is due, nobody decodes.
#pragma once

#include "sched/policy.h"

namespace cadans::sched {

/// First come, first served. Steps of prompts alone until none is due, then steps of decodes alone: the least time
/// to a first token, and the longest stalls. A baseline. Source: the scheduler of vLLM before chunked prefill
/// (Kwon et al. 2023, as described in Agrawal et al. 2024, section 3.2).
Policy prefill_first() noexcept;

}  // namespace cadans::sched
