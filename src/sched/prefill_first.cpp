#include "sched/prefill_first.h"

#include "sched/shares.h"

namespace cadans::sched {
namespace {

void prompts_else_decodes(const View& view, std::vector<Share>& shares) {
    share_prompts(view, view.limits.max_rows, shares);
    if (shares.empty()) share_decodes(view, view.limits.max_rows, shares);
}

}  // namespace

Policy prefill_first() noexcept { return {"prefill-first", first_come, prompts_else_decodes, nullptr, nullptr}; }

}  // namespace cadans::sched
