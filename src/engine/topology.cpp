#include "engine/topology.h"

#include <hwloc.h>

#include <algorithm>
#include <fstream>
#include <string>

namespace cadans::engine {
namespace {

/// Whole processors of the control group's quota, rounded up; 0 where there is none.
uint32_t quota_cores() {
    double quota = 0, period = 0;
    if (std::ifstream v2("/sys/fs/cgroup/cpu.max"); v2) {
        std::string limit;
        v2 >> limit >> period;
        if (limit != "max") quota = std::atof(limit.c_str());
    } else if (std::ifstream v1("/sys/fs/cgroup/cpu/cpu.cfs_quota_us"); v1) {
        v1 >> quota;
        std::ifstream("/sys/fs/cgroup/cpu/cpu.cfs_period_us") >> period;
    }
    if (quota <= 0 || period <= 0) return 0;
    return std::max(1U, static_cast<uint32_t>(quota / period + 0.999));
}

uint32_t allowed_physical_cores() {
    hwloc_topology_t topology = nullptr;
    if (hwloc_topology_init(&topology) != 0) return 1;
    uint32_t cores = 0;
    if (hwloc_topology_load(topology) == 0) {
        hwloc_bitmap_t mine = hwloc_bitmap_alloc();
        if (hwloc_get_cpubind(topology, mine, HWLOC_CPUBIND_PROCESS) != 0)
            hwloc_bitmap_copy(mine, hwloc_topology_get_topology_cpuset(topology));
        for (hwloc_obj_t core = nullptr;
             (core = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_CORE, core)) != nullptr;)
            cores += hwloc_bitmap_intersects(core->cpuset, mine) != 0;
        hwloc_bitmap_free(mine);
    }
    hwloc_topology_destroy(topology);
    return std::max(cores, 1U);
}

}  // namespace

uint32_t usable_cores() {
    const uint32_t cores = allowed_physical_cores(), quota = quota_cores();
    return quota == 0 ? cores : std::min(cores, quota);
}

}  // namespace cadans::engine
