// The policy of a fixed batch: every decode row, then prompts until the batch is full.
#pragma once

#include "sched/policy.h"

namespace cadans::sched {

inline constexpr uint32_t kFixedBatch = 2048;  ///< tokens; llama-server's default

/// First come, first served. A batch has one row for everyone who decodes, and kFixedBatch tokens of prompts; where a
/// step holds fewer rows than that, the batch takes several steps and nobody decodes between them. A baseline.
/// Source: how llama-server fills a batch (its option --batch-size).
Policy fixed_batch() noexcept;

}  // namespace cadans::sched
