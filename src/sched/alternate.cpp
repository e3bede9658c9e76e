#include "sched/alternate.h"

#include "sched/shares.h"

namespace cadans::sched {
namespace {

void prompts_and_decodes_in_turn(const View& view, std::vector<Share>& shares) {
    Nanos last_prompt = 0, last_word = 0;
    for (const SequenceView& one : view.running) {
        Nanos& last = one.phase() == Phase::prefill ? last_prompt : last_word;
        last = std::max(last, one.last_step);
    }
    const bool words_turn = last_prompt > last_word;
    if (!words_turn) share_prompts(view, std::min(view.limits.max_rows, view.limits.prefill_chunk), shares);
    if (shares.empty()) share_decodes(view, view.limits.max_rows, shares);
    if (shares.empty()) share_prompts(view, std::min(view.limits.max_rows, view.limits.prefill_chunk), shares);
}

}  // namespace

Policy alternate() noexcept { return {"alternate", first_come, prompts_and_decodes_in_turn, nullptr, nullptr}; }

}  // namespace cadans::sched
