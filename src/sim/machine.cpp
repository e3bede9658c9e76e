#include "sim/machine.h"

#include <fmt/format.h>

#include <algorithm>

#include "sched/policies.h"
#include "sim/report.h"

namespace cadans::sim {
namespace {

constexpr uint32_t kLargestBudget = 2048;
constexpr uint32_t kUsualRows = 512;     ///< of a prompt in one step, where the policy has no wish of its own
constexpr uint32_t kWholePrompt = 4096;  ///< what passes for whole: as far as predictions go

/// A step has at most `rows` rows, decode rows included; one more than may run, so that a prompt always moves.
sched::House house_of(const Room& room, uint32_t rows) {
    sched::House house;
    house.limits.max_running = room.running;
    house.limits.prefill_chunk = rows;
    house.limits.max_rows = std::max(rows, room.running + 1);
    house.models.push_back({ModelId{0}, kVocabulary, room.context_tokens, {{0, kPageTokens}}});
    house.page_bytes = room.kv_tokens;
    house.prefix_cache = room.prefix_cache;
    return house;
}

/// Its policy believes what its steps cost.
Machine machine_with(const sched::Policy& policy, sched::House house, const Fit& fit) {
    Machine machine;
    machine.policy = policy;
    machine.house = std::move(house);
    machine.house.costs = {fit.cost};
    machine.cost = fit.cost;
    machine.unsteady = fit.unsteady;
    return machine;
}

}  // namespace

Fit built_in_fit() {
    StepCost cost;
    cost.weights_ps = 38'000'000'000;
    cost.row_ps = 12'000'000'000;
    cost.step_ps = 400'000'000;
    cost.prompt_key_ps = 600'000;
    cost.decode_key_ps = 1'000'000;
    cost.logits_ps = 6'000'000'000;
    return {"built-in: 1B model in 4 bits on two desktop cores", cost, {}, KvShape{}};
}

const std::vector<std::string>& policy_names() {
    static const std::vector<std::string> names = [] {
        const auto known = sched::policy_names();
        return std::vector<std::string>(known.begin(), known.end());
    }();
    return names;
}

uint32_t largest_budget(const StepCost& cost, Nanos gap, uint32_t most) {
    const auto fits = [&](uint32_t rows) {
        StepShape shape;
        cost.add(shape, kIsolatedContext, rows, 1);
        return cost.predict(shape) * kNanosPerMicro <= gap;
    };
    uint32_t low = 1, high = most + 1;
    while (high - low > 1) {
        const uint32_t middle = low + (high - low) / 2;
        (fits(middle) ? low : high) = middle;
    }
    return low;
}

Result<sched::Policy> policy_named(std::string_view name) {
    if (const auto policy = sched::policy_by_name(name)) return *policy;
    return bad_input(fmt::format("there is no policy '{}'; there are {}", name, fmt::join(policy_names(), ", ")),
                     "--policy");
}

Result<Machine> recorded_machine(std::string_view name, const sched::House& house, const Fit& fit,
                                 std::optional<Nanos> gap) {
    auto policy = policy_named(name);
    if (!policy) return std::move(policy).error();
    Machine machine = machine_with(*policy, house, fit);
    if (gap) machine.house.limits.gap = *gap / kNanosPerMicro;
    return machine;
}

Result<Machine> machine_of(std::string_view name, const Room& room, const Fit& fit, Nanos gap) {
    auto policy = policy_named(name);
    if (!policy) return std::move(policy).error();
    uint32_t prompt_rows = kUsualRows;
    if (name == "static-chunk" || name == "alternate") prompt_rows = largest_budget(fit.cost, gap, kLargestBudget);
    if (name == "prefill-first") prompt_rows = kWholePrompt;
    Machine machine = machine_with(*policy, house_of(room, prompt_rows), fit);
    machine.queue = room.queue;
    machine.house.limits.gap = gap / kNanosPerMicro;
    return machine;
}

}  // namespace cadans::sim
