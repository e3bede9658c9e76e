#include "sim/modelled_executor.h"

#include "base/check.h"
#include "base/random.h"
#include "sim/workload.h"

namespace cadans::sim {

/// A pure function of plan and seed: which of the factors a step has is drawn from its number.
Nanos ModelledExecutor::time_of(const StepPlan& plan) const noexcept {
    const StepShape shape = cost_.shape_of(plan);
    const Nanos time = cost_.predict(shape) * kNanosPerMicro;
    const std::vector<uint32_t>& factors = shape.prompt_context > 0 ? unsteady_.reading : unsteady_.writing;
    if (factors.empty()) return time;
    return time / StepCost::kWhole * factors[mix64(mix64(unsteady_.seed) ^ index(plan.id)) % factors.size()];
}

void ModelledExecutor::submit(const StepPlan& plan) {
    check(!busy_, "one step at a time");
    result_.clear();
    result_.id = plan.id;
    result_.begin = now_ + between_;
    result_.end = result_.begin + time_of(plan);
    for (const StepItem& item : plan.items) {
        ItemResult got;
        got.seq = item.seq;
        got.computed = item.count - item.drafts;
        got.accepted_begin = got.accepted_end = static_cast<uint32_t>(result_.accepted.size());
        got.scores_begin = got.scores_end = static_cast<uint32_t>(result_.scores.size());
        if (item.sample) {
            const uint64_t noise = noise_key(index(item.seq), 0, item.first + got.computed);
            result_.accepted.push_back({TokenId{static_cast<uint32_t>(noise % kVocabulary)}, 0.0F, 0, {}});
            got.accepted_end++;
        }
        if (item.score) {
            const uint32_t end = item.first + item.count;
            for (uint32_t p = item.first; p < end && p + 1 < item.known.size(); p++)
                result_.scores.push_back({item.known[p + 1], 0.0F, 0, {}});
            got.scores_end = static_cast<uint32_t>(result_.scores.size());
        }
        result_.items.push_back(got);
    }
    busy_ = true;
}

const StepResult* ModelledExecutor::poll() {
    if (!busy_ || now_ < result_.end) return nullptr;
    busy_ = false;
    return &result_;
}

}  // namespace cadans::sim
