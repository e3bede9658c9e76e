// The policy of a fixed token budget: every decode row first, then prompts in order of arrival.
#pragma once

#include "sched/policy.h"

namespace cadans::sched {

/// First come, first served. A step holds one row for every decoding sequence and up to
/// limits.prefill_chunk prompt tokens. Source: Sarathi-Serve (Agrawal et al. 2024), section 4.
Policy static_chunk() noexcept;

}  // namespace cadans::sched
