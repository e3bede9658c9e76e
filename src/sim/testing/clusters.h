// Clusters for tests: of equal workers, and drawn from a seed.
#pragma once

#include <cmath>
#include <string>

#include "sim/cluster.h"
#include "sim/draws.h"
#include "sim/load_spec.h"
#include "sim/machine.h"

namespace cadans::sim {

inline ClusterSpec shared_cluster(const Machine& machine, uint32_t workers) {
    return {std::vector<Member>(workers, {machine, Role::shared})};
}

inline ClusterSpec split_cluster(const Machine& machine, uint32_t prefill, uint32_t decode, LinkSpeed link,
                                 KvShape kv) {
    ClusterSpec spec{std::vector<Member>(prefill, {machine, Role::prefill}), link, kv};
    spec.members.insert(spec.members.end(), decode, {machine, Role::decode});
    return spec;
}

/// A cluster of one to five workers, each with its own speed and room, and a load that fills it more or less.
struct RandomCluster {
    explicit RandomCluster(uint64_t seed) {
        Draws draws(seed);
        const bool split = draws.below(3) != 0;
        const uint64_t count = split ? 2 + draws.below(4) : 1 + draws.below(4);
        const auto& policies = policy_names();
        const std::string policy = policies[draws.below(policies.size())];
        const uint64_t readers = split ? 1 + draws.below(count - 1) : count;
        for (uint64_t i = 0; i < count; i++) {
            Room room;
            room.context_tokens = 4096;
            room.kv_tokens = static_cast<uint32_t>(2048 << draws.below(4));
            room.running = static_cast<uint32_t>(1 + draws.below(12));
            room.queue = static_cast<uint32_t>(draws.below(2) == 0 ? 4 : 1000);
            room.prefix_cache = draws.below(2) == 0;
            Machine machine = *machine_of(policy, room, built_in_fit(), 400 * kNanosPerMilli);
            machine.cost.row_ps /= 1 + draws.below(8);
            machine.between = static_cast<Nanos>(draws.below(2) * kNanosPerMilli);
            spec.members.push_back({machine, !split ? Role::shared : i < readers ? Role::prefill : Role::decode});
        }
        spec.link = {std::pow(10.0, 5 + 6 * draws.uniform()), static_cast<Nanos>(draws.below(20'000'000))};
        const double rate = 0.05 * static_cast<double>(count << draws.below(5));
        const std::string sizes = draws.below(2) == 0 ? "prompt=300,output=20" : "prompt=60,output=150";
        const std::string form = draws.below(4) == 0
                                     ? "household:people=4,days=0.5"
                                     : "gamma:requests=120,cv=3," + sizes + ",rate=" + std::to_string(rate);
        load = *make_load(form, seed);
        for (Arrival& one : load.arrivals) one.prompt = std::min(one.prompt, 3000U);
        name = "seed " + std::to_string(seed) + ": " + std::to_string(count) + " workers, " +
               std::to_string(split ? readers : 0) + " only read, " + policy + ", " + form;
    }

    std::string name;
    ClusterSpec spec;
    Workload load;
};

}  // namespace cadans::sim
