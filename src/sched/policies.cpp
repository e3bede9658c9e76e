#include "sched/policies.h"

#include <array>

#include "sched/alternate.h"
#include "sched/cadence.h"
#include "sched/fixed_batch.h"
#include "sched/prefill_first.h"
#include "sched/static_chunk.h"

namespace cadans::sched {
namespace {

std::array<Policy, 5> all() noexcept {
    return {cadence(), prefill_first(), static_chunk(), fixed_batch(), alternate()};
}

}  // namespace

std::optional<Policy> policy_by_name(std::string_view name) noexcept {
    for (const Policy& policy : all()) {
        if (name == policy.name) return policy;
    }
    return std::nullopt;
}

std::vector<std::string_view> policy_names() {
    std::vector<std::string_view> names;
    for (const Policy& policy : all()) names.emplace_back(policy.name);
    return names;
}

}  // namespace cadans::sched
