// Could this sequence ever run here? Answered from facts that do not change, so at any door.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "flow/model_facts.h"
#include "flow/request.h"
#include "flow/step_cost.h"
#include "sched/limits.h"

namespace cadans::sched {

/// The unchanging facts of one machine: resident models, the page budget, the limits.
struct House {
    std::vector<ModelFacts> models;
    uint64_t page_bytes = 0;  ///< all pages of all groups of all models together
    SchedulerLimits limits;
    std::vector<StepCost> costs = {};  ///< what steps take, by ModelId; may be empty: then nothing is predicted
    bool prefix_cache = false;         ///< pages are kept for the next prompt that begins alike

    const ModelFacts* find(ModelId model) const noexcept;
};

/// Tokens whose keys and values the sequence needs at its longest: the last drawn token is never computed.
constexpr uint32_t tokens_computed_max(uint32_t prompt, uint32_t max_new_tokens) noexcept {
    return prompt + (max_new_tokens == 0 ? 0 : max_new_tokens - 1);
}

/// Bytes of pages that a sequence holds when all that is known of it is computed, and a page of headroom: so that one
/// who starts is not preempted at once.
uint64_t promised_bytes(const House& house, const ModelFacts& model, uint32_t prompt, uint32_t max_new_tokens,
                        uint32_t known) noexcept;

/// The most tokens, at most the model's context, that one sequence can have computed when it has all pages
/// to itself: what could_run() measures against. 0 if not even one page of each group fits.
uint32_t longest_sequence(const House& house, const ModelFacts& model) noexcept;

/// Errors: not_found (model); bad_input (empty prompt, an id outside the vocabulary, end tokens not
/// ascending); too_long (over the context, or over all pages together; both numbers are named).
/// Thread-safe. Cost: one pass over the prompt, no allocation unless refused.
Status could_run(const House& house, const SequenceRequest& request);

}  // namespace cadans::sched
