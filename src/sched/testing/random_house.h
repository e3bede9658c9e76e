// Houses and policies by chance: small, tight and odd ones.
#pragma once

#include <algorithm>

#include "base/random.h"
#include "kv/page_needs.h"
#include "sched/admission.h"
#include "sched/policy.h"

namespace cadans::sched {

/// A policy that no one would want: any order, any share, anyone next, often nobody but one. The promises
/// are the scheduler's, so they must hold under it too.
inline Policy erratic() {
    return {"erratic",
            [](const View& view) {
                return static_cast<uint32_t>(mix64(static_cast<uint64_t>(view.now)) % view.waiting.size());
            },
            [](const View& view, std::vector<Share>& shares) {
                const auto count = static_cast<uint32_t>(view.running.size());
                for (uint32_t i = 0; i < count; i++) {
                    const uint64_t noise = mix64(static_cast<uint64_t>(view.now) * 31 + i);
                    if (noise % 3 == 0 && i + 1 < count) continue;
                    const uint32_t one = static_cast<uint32_t>((i + static_cast<uint64_t>(view.now)) % count);
                    shares.push_back({one, static_cast<uint32_t>(1 + noise / 3 % 50)});
                }
            }};
}

/// `world.draw(below)` and `world.chance(percent)` are the dice.
template <class Dice>
House random_house(Dice& world) {
    House house;
    house.limits.max_running = static_cast<uint32_t>(1 + world.draw(12));
    house.limits.max_rows = house.limits.max_running + static_cast<uint32_t>(1 + world.draw(64));
    house.limits.prefill_chunk = static_cast<uint32_t>(1 + world.draw(64));
    const uint64_t models = 1 + world.draw(2);
    for (uint16_t m = 0; m < models; m++) {
        ModelFacts model{
            ModelId{m}, static_cast<uint32_t>(2 + world.draw(1000)), static_cast<uint32_t>(64 + world.draw(400)), {}};
        model.groups.push_back({0, 1 + world.draw(50)});
        if (world.chance(50)) model.groups.push_back({static_cast<uint32_t>(1 + world.draw(200)), 1 + world.draw(50)});
        house.models.push_back(model);
    }
    uint64_t one = 0;
    for (const ModelFacts& model : house.models) {
        one = std::max(one, kv::most_bytes(model, model.context_tokens, house.limits.max_rows));
    }
    if (world.chance(70)) {
        StepCost cost;
        cost.weights_ps = world.draw(20'000'000);
        cost.row_ps = world.draw(2'000'000);
        cost.step_ps = world.draw(5'000'000);
        cost.prompt_key_ps = world.draw(20'000);
        cost.decode_key_ps = world.draw(40'000);
        cost.logits_ps = world.draw(3'000'000);
        house.costs.assign(models, cost);
        if (models == 2 && world.chance(90)) {  // the second drafts for the first, and is asked for itself too
            house.draft = House::DraftModel{ModelId{1}, {ModelId{0}}};
            house.costs[1].weights_ps /= 1 + world.draw(20);
            house.costs[1].row_ps /= 1 + world.draw(20);
            house.costs[1].step_ps /= 1 + world.draw(20);
            house.costs[1].logits_ps /= 1 + world.draw(20);
        }
    }
    house.limits.gap = static_cast<Micros>(1 + world.draw(100));
    house.prefix_cache = world.chance(70);
    house.page_bytes = 2 * one / 3 + world.draw(world.chance(80) ? one / 2 : 10 * one);
    return house;
}

}  // namespace cadans::sched
