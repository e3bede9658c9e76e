#include "sched/static_chunk.h"

#include "sched/shares.h"

namespace cadans::sched {
namespace {

void decodes_then_a_chunk(const View& view, std::vector<Share>& shares) {
    const uint32_t left = share_decodes(view, view.limits.max_rows, shares);
    share_prompts(view, std::min(left, view.limits.prefill_chunk), shares);
}

}  // namespace

Policy static_chunk() noexcept { return {"static-chunk", first_come, decodes_then_a_chunk, nullptr, nullptr}; }

}  // namespace cadans::sched
