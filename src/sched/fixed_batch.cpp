#include "sched/fixed_batch.h"

#include "sched/shares.h"

namespace cadans::sched {
namespace {

/// The batch that the first prompt is in the middle of: counted from its own start, since a policy remembers nothing.
uint32_t left_of_batch(const View& view) {
    for (const SequenceView& one : view.running) {
        if (one.phase() == Phase::prefill) return kFixedBatch - one.computed % kFixedBatch;
    }
    return kFixedBatch;
}

void decodes_then_the_batch(const View& view, std::vector<Share>& shares) {
    const uint32_t left = left_of_batch(view);
    uint32_t rows = view.limits.max_rows;
    if (left == kFixedBatch) rows = share_decodes(view, rows, shares);
    share_prompts(view, std::min(rows, left), shares);
}

}  // namespace

Policy fixed_batch() noexcept { return {"fixed-batch", first_come, decodes_then_the_batch, nullptr, nullptr}; }

}  // namespace cadans::sched
